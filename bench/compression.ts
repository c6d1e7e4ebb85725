/** `service.compression: auto` on a slow line, against the same without it: results that are logs, and random ones. */
import fs from 'node:fs';
import path from 'node:path';
import { writeConfig } from './agent-config.ts';
import type { Goal, Measurement, Side } from './measurement.ts';
import { OUR_NODE_ARGS, run } from './processes.ts';
import { startRelay } from './relay.ts';
import { sideOf } from './result-sides.ts';
import { RESULT_BLOCK_BYTES, resultName } from './service/answers.ts';
import { JOB_ID } from './service/job.ts';
import { startService } from './service/process.ts';
import type { SyncFigures } from './sides/sync-results.ts';

const WIRE = { roundTripMs: 100, bytesPerSecond: 2_000_000 };
const KINDS = ['log', 'plain'] as const;
const WORDS = { log: 'logs', plain: 'random bytes' } as const;

const goal = (kind: (typeof KINDS)[number], atMost: number): Goal => ({
  what: `ten results of 2.8 MB, one after the other, ${WORDS[kind]} in base64, over a line of 2 MB/s: with compression against without`,
  ...{ kind: 'ratio', figure: 'seconds', ours: kind, peer: `${kind}, off`, atMost },
});

export const compression: Measurement = {
  name: 'compression',
  needs: [],
  rounds: 3,
  // The first one shows that the line is slow.
  goals: [goal('log', 0.5), goal('plain', 0.8)],
  prepare: async ({ directory, quick }) => {
    const count = quick ? 2 : 10;
    const sides: Record<string, Side> = {};
    const ends: (() => Promise<void>)[] = [];
    for (const kind of KINDS) {
      const listed = Array.from({ length: count }, (_, at) => `/part-${at}${resultName(RESULT_BLOCK_BYTES, kind)}`);
      const service = await startService({ listed }, directory);
      const { port } = new URL(service.url);
      const relay = await startRelay(Number(port), WIRE);
      const url = service.url.replace(`:${port}`, `:${relay.port}`);
      ends.push(relay.close, service.stop);
      for (const setting of ['auto', 'off'] as const)
        sides[setting === 'auto' ? kind : `${kind}, off`] = async () => {
          const into = fs.mkdtempSync(path.join(directory, 'agent-'));
          const at = { url, concurrency: 1, compression: setting };
          const args = [sideOf('sync-results'), writeConfig(into, at, { results: { transfer: 'soap' } }), JOB_ID];
          const { stdout } = await run(process.execPath, [...OUR_NODE_ARGS, ...args]);
          const { seconds, files, bytes } = JSON.parse(stdout) as SyncFigures;
          if (files !== count || bytes !== count * RESULT_BLOCK_BYTES) throw new Error(`not all came: ${stdout}`);
          return { seconds };
        };
    }
    const close = async () => {
      for (const end of ends) await end();
    };
    return { sides, close };
  },
};
