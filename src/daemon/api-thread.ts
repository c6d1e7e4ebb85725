/** The sockets for members of the group and for programs, in a thread of their own (src/api). */
import fs from 'node:fs';
import type { Log } from '../agent/ports/host.ts';
import { type Config, socketsOf } from '../config/config.ts';
import { asJobtailError } from '../errors.ts';
import { packageFile } from '../system/package-file.ts';
import { ServingThread } from './serving-thread.ts';

const SCOPE = 'the sockets';
const HINT = 'create api.directory for the user of the agent, or set it to another directory';

export class ApiThread {
  readonly #log: Log;
  readonly #thread: ServingThread<{ readonly config: Config }>;

  constructor(log: Log) {
    this.#log = log;
    this.#thread = new ServingThread({
      program: packageFile('dist/api/worker.js'),
      onServing: ({ config }) => log.info({ path: config.api.directory }, 'sockets listening'),
      onFailure: (err) => log.error({ scope: SCOPE, err }, 'request at a socket failed'),
      onEnded({ config }, err, isFirst) {
        const fields = { scope: SCOPE, code: 'config', path: config.api.directory, err, hint: HINT };
        log[isFirst ? 'error' : 'debug'](fields, 'cannot listen at the sockets');
      },
    });
  }

  /** Only members of its group can reach a socket in a directory that is made here. */
  async use(config: Config): Promise<void> {
    const { directory } = config.api;
    if (directory === null || socketsOf(config) === null) return await this.#thread.use(null);
    try {
      fs.mkdirSync(directory, { recursive: true, mode: 0o750 });
      await this.#thread.use({ config });
    } catch (thrown) {
      const err = asJobtailError(thrown).message;
      this.#log.warn({ scope: SCOPE, path: directory, err, hint: HINT }, 'no directory for the sockets');
      await this.#thread.use(null);
    }
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}
