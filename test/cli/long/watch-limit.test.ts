/** `agent watch` beside an agent that gets no answer of the service. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { watch } from '../../../src/cli/commands/watch.ts';
import { loadConfig } from '../../../src/config/load.ts';
import { openOwnStore } from '../../../src/daemon/state.ts';
import type { JobId } from '../../../src/job.ts';
import { SILENT } from '../../support/silent-log.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

it('agent watch ends within some ten seconds although the running agent answers nothing', {
  timeout: 60_000,
}, async () => {
  const directory = temporaryDirectory();
  const file = path.join(directory, 'config.yaml');
  fs.writeFileSync(path.join(directory, 'password'), 'secret', { mode: 0o600 });
  const service = { protocol: 'rest', baseUrl: 'http://127.0.0.1:9' };
  const auth = { method: 'password', username: 'alice', passwordFile: 'password' };
  fs.writeFileSync(
    file,
    JSON.stringify({ service, auth, mirror: { directory }, state: { directory: `${directory}/state` } }),
  );
  // The lock of a running agent.
  const { store, close } = openOwnStore(await loadConfig(file), SILENT);
  const output = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const beganAt = performance.now();
    await watch('601' as JobId, { config: file, task: [], file: [], results: true, wait: true });
    expect(performance.now() - beganAt).toBeLessThan(16_000);
    expect(store.jobs.get('601' as JobId)?.state).toBe('watched');
  } finally {
    output.mockRestore();
    close();
  }
});
