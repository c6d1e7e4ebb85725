/**
 * A kill in the midst of a large log: what was committed is requested again as far as the overlap only.
 * JOBTAIL_BACKLOG_MIB says how large the log is (256).
 */
import fs from 'node:fs';
import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { openSharedStore } from '../../../src/daemon/state.ts';
import type { JobId } from '../../../src/job.ts';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';

const MIB = 1024 * 1024;
const BACKLOG_MIB = Number(process.env['JOBTAIL_BACKLOG_MIB'] ?? 256);
const LINE = Buffer.from('0123456789 a line of the log that a job has written\n');
/** The overlap, the characters before it that show how the service decodes, and whole characters. */
const MAX_AGAIN_BYTES = 256 + 1_100;

it(`a log of ${BACKLOG_MIB} MiB goes on from its committed offset after each kill`, {
  timeout: 120_000 + BACKLOG_MIB * 4_000,
}, async (context) => {
  const place = Place.make(context);
  const { sandbox, job, task, mirror } = await submitQuietJob(place);
  const { stdout } = task.files;
  grow(stdout, BACKLOG_MIB);
  place.configure(sandbox, { watch: [requestOf(job)], results: { enabled: false } });
  const config = await loadConfig(place.configFile);
  const committed = () => {
    const store = openSharedStore(config);
    try {
      return store.liveFiles.ofJob(job.jobId as JobId).find(({ file }) => file === 'stdout')?.position ?? 0;
    } finally {
      store.close();
    }
  };

  /** Starts the agent, and kills it once the mirror has so much; the offsets it requested, and the calls it made. */
  const runUntil = async (bytes: number) => {
    const callsBefore = (await sandbox.calls()).length;
    const agent = await place.run();
    await until(`${bytes} bytes of the log`, () => fs.existsSync(mirror) && fs.statSync(mirror).size >= bytes);
    await agent.kill();
    const calls = (await sandbox.calls()).slice(callsBefore);
    const entries = calls.flatMap((call) => call.entries ?? []);
    const offsets = entries.flatMap((entry) =>
      entry?.fileType === 'StandardOutputFile' ? [Number(entry.offset)] : [],
    );
    return { from: Math.min(...offsets), downloads: calls.filter(({ path }) => path !== undefined).length };
  };

  const { size } = fs.statSync(stdout);
  expect(await runUntil(0.2 * size)).toEqual({ from: 0, downloads: 1 });
  for (const share of [0.5, 0.8, 1]) {
    if (share === 0.8) fs.cpSync(place.state, `${place.state}.copy`, { recursive: true });
    const before = committed();
    const { from, downloads } = await runUntil(share * size);
    expect(from).toBeGreaterThanOrEqual(before - MAX_AGAIN_BYTES);
    expect(downloads).toBe(0);
    process.stdout.write(`killed at ${share}: ${before} bytes committed, requested from ${from}\n`);
  }

  // With an older copy of the state, what the copy promises is not requested again either.
  fs.rmSync(place.state, { recursive: true });
  fs.renameSync(`${place.state}.copy`, place.state);
  const before = committed();
  fs.appendFileSync(stdout, LINE);
  const { from, downloads } = await runUntil(size + LINE.length);
  expect(before).toBeGreaterThan(0);
  expect(from).toBeGreaterThanOrEqual(before - MAX_AGAIN_BYTES);
  expect(downloads).toBe(0);
  expect(fs.statSync(mirror).size).toBe(fs.statSync(stdout).size);
});

function grow(file: string, mib: number): void {
  const block = Buffer.concat(Array.from({ length: Math.ceil(MIB / LINE.length) }, () => LINE)).subarray(0, MIB);
  for (let times = 0; times < mib; times++) fs.appendFileSync(file, block);
}
