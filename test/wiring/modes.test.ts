/** Who may read what the agent makes: the mode of every file and directory, whatever the umask. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { execute } from '../../src/cli/execute.ts';
import { requestOf, taskOf } from '../support/e2e-job.ts';
import { Place } from '../support/e2e-place.ts';
import { until } from '../support/e2e-until.ts';
import { runDaemon } from './whole-daemon.ts';

/** Each mode below a directory, with one path that has it; the directory itself is `.`. */
function modesBelow(directory: string): Record<string, string> {
  const modes: Record<string, string> = {};
  for (const name of ['.', ...fs.readdirSync(directory, { recursive: true, encoding: 'utf8' })]) {
    const stat = fs.lstatSync(path.join(directory, name));
    const sort = stat.isDirectory() ? 'directory' : stat.isFile() ? 'file' : 'other';
    modes[`${sort} ${(stat.mode & 0o777).toString(8)}`] ??= name;
  }
  return modes;
}

test.for(['000', '022', '077'])('under the umask %s, all that an agent makes has its mode', async (octal, context) => {
  const umask = Number.parseInt(octal, 8);
  const place = Place.make(context);
  const before = process.umask(umask);
  onTestFinished(() => void process.umask(before));
  const sandbox = await place.startSandbox();
  const job = await sandbox.submit({ tasks: [{}] });
  const { files } = taskOf(job);
  fs.writeFileSync(files.stdout, 'first\n'.repeat(200));
  const result = path.join(path.dirname(files.stdout), 'below', 'result.dat');
  fs.mkdirSync(path.dirname(result), { recursive: true });
  fs.writeFileSync(result, 'a result');
  place.configure(sandbox, { watch: [requestOf(job)], view: { listen: '127.0.0.1:0' } });
  fs.chmodSync(place.configFile, 0o600);
  const { end } = await runDaemon(place);
  await place.mirrored(job, 'stdout');
  const names = () => fs.readdirSync(place.mirror, { recursive: true, encoding: 'utf8' });
  await until('the result', async () => names().some((name) => name.endsWith('below/result.dat')));
  fs.writeFileSync(files.stdout, 'other\n'.repeat(200));
  await until('a generation', async () => names().some((name) => name.endsWith('.log.1')));
  const state = modesBelow(place.state);
  await end();
  const report = path.join(place.directory, 'report');
  await execute(['report', '--config', place.configFile, '--output', report]);
  expect((fs.statSync(report).mode & 0o777).toString(8)).toBe('600');

  const allowed = (mode: number) => (mode & ~umask).toString(8);
  expect(Object.keys(modesBelow(place.mirror)).sort()).toEqual(
    [`directory ${allowed(0o750)}`, `file ${allowed(0o640)}`].sort(),
  );
  expect(Object.entries(state).filter(([mode]) => !['directory 700', 'file 600', 'other 600'].includes(mode))).toEqual(
    [],
  );
});
