/** `agent watch` beside an agent that gets no answer of the service. */
import { expect, it, vi } from 'vitest';
import { watchEach } from '../../../src/cli/commands/watch.ts';
import type { JobId } from '../../../src/job.ts';
import { until } from '../../support/e2e-until.ts';
import { ownState } from '../own-state.ts';

it('agent watch of several jobs asks for all at once, and ends although the agent answers nothing', async () => {
  const { file, store } = await ownState();
  const jobIds = ['601', '602', '603'] as JobId[];
  const output = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const watching = watchEach(jobIds, { config: file, task: [], file: [], results: true, wait: true });
    await until('all to be asked for', () => store.requests.open('service').length === jobIds.length);
    await watching;
    expect(jobIds.map((jobId) => store.jobs.get(jobId)?.state)).toEqual(['watched', 'watched', 'watched']);
  } finally {
    output.mockRestore();
  }
});
