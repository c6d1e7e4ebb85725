/** The first poll of a long job streams in little memory; other jobs stay on time. JOBTAIL_BACKLOG_MIB: size (64). */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { expect, it } from 'vitest';
import type { JobDescription } from '../../../simulator/control.ts';
import { requestOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { needsThat } from '../../support/needs.ts';

const MIB = 2 ** 20;
const BACKLOG_MIB = Number(process.env['JOBTAIL_BACKLOG_MIB'] ?? 64);
/** However long the backlog is. */
const MAX_MEMORY_BYTES = 192 * MIB;
/** Lines of another job that have to come before the backlog is through. */
const LINES_MEANWHILE = 6;
/** A slow disk on a busy machine. */
const SLOWEST_MIB_PER_SECOND = 1;

/** Lines of many scripts, all different, so that whatever is lost or comes twice shows; some characters are cut. */
function writeBacklog(file: string): void {
  const handle = fs.openSync(file, 'w');
  for (let mib = 0, line = 0; mib < BACKLOG_MIB; mib++) {
    let text = '';
    while (text.length < 0.9 * MIB) text += `${line++} Příliš žluťoučký kůň 敏捷的棕色狐狸 ${'.'.repeat(line % 97)}\n`;
    fs.writeSync(handle, text);
  }
  fs.closeSync(handle);
}

function peakBytesOf(pid: number): number {
  const status = fs.readFileSync(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+([0-9]+) kB/m.exec(status)?.[1]) * 1024;
}

const timeout = 120_000 + (BACKLOG_MIB / SLOWEST_MIB_PER_SECOND) * 1_000;

const WITH_PROC = needsThat(fs.existsSync('/proc/self/status'), 'the memory of an agent: there is no /proc here');

it(`a backlog of ${BACKLOG_MIB} MiB streams through, and delays no other job`, {
  timeout,
  ...WITH_PROC,
}, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  const large = await sandbox.submit({ tasks: [{}] });
  const small = await sandbox.submit({ tasks: [{}] });
  const stdoutOf = ({ tasks }: JobDescription) => tasks[0]?.files.stdout ?? '';
  const mirrorOf = ({ jobId, tasks }: JobDescription) => place.mirrorOf(jobId, tasks[0]?.taskId ?? '', 'stdout');
  writeBacklog(stdoutOf(large));
  const { size } = fs.statSync(stdoutOf(large));
  // So that the fastest machine takes a while.
  await sandbox.fault({ jobId: large.jobId, kind: 'drip', bytes: MIB / 4, everyMs: 5 });
  place.configure(sandbox, { watch: [large, small].map(requestOf), results: { enabled: false } });
  const agent = await place.run();

  // While the one job is far from its end, each line of the other one comes.
  const isDone = () => fs.existsSync(mirrorOf(large)) && fs.statSync(mirrorOf(large)).size === size;
  let lines = 0;
  for (; !isDone(); lines++) {
    fs.appendFileSync(stdoutOf(small), `line ${lines}\n`);
    await place.mirrored(small, 'stdout');
  }
  expect(lines, 'lines of the other job that came meanwhile').toBeGreaterThanOrEqual(LINES_MEANWHILE);
  await until('the last bytes to be committed', async () =>
    (await place.status()).jobs.some(({ files }) => files.some(({ bytes }) => bytes === size)),
  );
  const peakBytes = peakBytesOf(agent.pid);
  process.stdout.write(
    `${BACKLOG_MIB} MiB: ${lines} lines of the other job meanwhile, ${Math.round(peakBytes / MIB)} MiB of memory\n`,
  );
  expect(peakBytes).toBeLessThan(MAX_MEMORY_BYTES);
  // Without either of them in memory.
  execFileSync('cmp', [mirrorOf(large), stdoutOf(large)]);
  expect(agent.log.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
});
