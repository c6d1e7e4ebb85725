import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { resultsProgress } from '../../../src/cli/show/pass.ts';
import type { JobId } from '../../../src/job.ts';
import type { ResultSyncRow } from '../../../src/store/rows.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

const row = (afterMs: number, done: number, bytes: number): ResultSyncRow => ({
  jobId: '501' as JobId,
  startedAt: 1_000,
  updatedAt: 1_000 + afterMs,
  endedAt: null,
  wanted: 100,
  done,
  bytes,
  wantedBytes: null,
  way: 'soap',
  fallback: null,
  arriving: [],
});

function show(rows: readonly ResultSyncRow[], isTTY = true): string {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 200 });
  const progress = resultsProgress(stream);
  for (const one of rows) progress.show(one);
  progress.close();
  return String(stream.read() ?? '');
}

describe('the progress of results', () => {
  it('is a bar with files, bytes, rate and time left, which is gone at the end, and nothing without a terminal', () => {
    expect(show([row(30_000, 20, 2_097_152)], false)).toBe('');
    const shown = show([row(500, 0, 0), row(2_000, 20, 2_097_152)]);
    expect(shown.slice(shown.indexOf(']') + 2)).toBe('20 of 100 files, 2.0 MiB, 1.0 MiB/s, 8 s left\r\u001b[J');
    expect(show([row(500, 0, 0)])).toBe('');
  });

  it('goes by bytes where the sizes are known: one large file and many small ones', () => {
    vi.stubEnv('LC_ALL', 'C.UTF-8');
    const known = { ...row(4_000, 99, 104_857_600), wantedBytes: 419_430_400 };
    expect(show([known])).toContain('99 of 100 files, 100.0 MiB of 400.0 MiB, 25.0 MiB/s, 12 s left');
    expect(show([known])).toContain(`[${'█'.repeat(6)}${'░'.repeat(18)}]`);
    const grown = { ...row(4_000, 99, 524_288_000), wantedBytes: 419_430_400 };
    expect(show([{ ...grown, updatedAt: 20_000 }])).toContain(', 0 s left');
  });
});
