/** What the view is made of, in memory: a job as the server sends it, and bytes as a content. */

import { onTestFinished, vi } from 'vitest';
import type { Source } from '../../src/view/content/content.ts';
import type { JobSummary } from '../../src/view/contract/events.ts';
import { NO_RESULTS } from '../../src/view/events/jobs.ts';

export const jobSummary = (jobId: string, more: Partial<JobSummary> = {}): JobSummary => ({
  jobId,
  name: null,
  jobState: null,
  creationTime: null,
  submitTime: null,
  startTime: null,
  jobStateSince: null,
  endTime: null,
  state: 'watched',
  owner: null,
  isElsewhere: false,
  source: 'command',
  tasks: { found: 0, searching: false, hint: null },
  liveBytes: 0,
  polledAt: null,
  grownAt: null,
  stalledAt: null,
  changedAt: 0,
  hasResults: true,
  results: NO_RESULTS,
  firstError: null,
  ...more,
});

export function sourceOf(bytes: Buffer): Source {
  const read = (start: number, end: number) => {
    if (start < 0 || start > end || end > bytes.length)
      throw new Error(`read of [${start}, ${end}) of ${bytes.length}`);
    return Buffer.from(bytes.subarray(start, end));
  };
  let looked = Buffer.alloc(0);
  return {
    bytes: bytes.length,
    read,
    readShared(start, end) {
      // Whoever keeps what was looked at before finds something else there.
      looked.fill(0xee);
      looked = read(start, end);
      return looked;
    },
  };
}

/** What a module of the page looks for when it is loaded; gone with the test. */
export function stubPage(more: Readonly<Record<string, unknown>> = {}): void {
  const globals = {
    ...{ location: { pathname: '/', search: '' }, localStorage: { getItem: () => null }, document: { hidden: false } },
    ...more,
  };
  for (const [name, value] of Object.entries(globals)) vi.stubGlobal(name, value);
  onTestFinished(() => void vi.unstubAllGlobals());
}
