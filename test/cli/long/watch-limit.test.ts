/** `agent watch` beside an agent that gets no answer of the service. */
import { expect, it, vi } from 'vitest';
import { watch } from '../../../src/cli/commands/watch.ts';
import type { JobId } from '../../../src/job.ts';
import { ownState } from '../own-state.ts';

it('agent watch ends although the running agent answers nothing', { timeout: 60_000 }, async () => {
  const { file, store } = await ownState();
  const output = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    await watch('601' as JobId, { config: file, task: [], file: [], results: true, wait: true });
    expect(store.jobs.get('601' as JobId)?.state).toBe('watched');
  } finally {
    output.mockRestore();
  }
});
