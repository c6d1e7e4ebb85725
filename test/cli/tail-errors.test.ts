/** `agent tail` reports where a mirror ends before the remote file does: to the standard error, beside the lines. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, vi } from 'vitest';
import { mirrorPath } from '../../src/agent/live/mirror/mirror.ts';
import { tail } from '../../src/cli/commands/tail.ts';
import { JOB, STDOUT } from '../support/engine.ts';
import { ownState } from './own-state.ts';

const MESSAGE =
  'the mirror ends at byte 5: the service does not show what follows, and there are no raw bytes: refused';

it('prints the error of a live file after its lines', async () => {
  const { file, config, store } = await ownState();
  store.jobs.watch(
    { jobId: JOB, tasks: [STDOUT.taskId], files: ['stdout'], results: false, settleAfterMs: null, source: 'command' },
    0,
  );
  store.liveFiles.setError(JOB, STDOUT, { code: 'stuck', message: MESSAGE, hint: null, since: 0 });
  const mirror = mirrorPath(config.mirror.directory, JOB, STDOUT);
  fs.mkdirSync(path.dirname(mirror), { recursive: true });
  fs.writeFileSync(mirror, 'text ');
  const [out, err] = [vi.spyOn(process.stdout, 'write'), vi.spyOn(process.stderr, 'write')];
  const printed = (spy: typeof out) => spy.mock.calls.map(([text]) => String(text)).join('');
  for (const spy of [out, err]) spy.mockReturnValue(true);
  try {
    await tail([JOB], { config: file, task: [], file: [], lines: 10, prefix: false });
    expect(printed(out)).toContain('text ');
    expect(printed(err)).toBe(`task ${STDOUT.taskId} stdout: ${MESSAGE}\n`);
  } finally {
    for (const spy of [out, err]) spy.mockRestore();
  }
});
