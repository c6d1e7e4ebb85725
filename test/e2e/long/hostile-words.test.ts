/** Names and words of a service that would steer a terminal: every command shows them as text. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { quietJob } from '../../support/e2e-job.ts';
import { PROGRAM } from '../../support/e2e-program.ts';
import { until } from '../../support/e2e-until.ts';
import { needs } from '../../support/needs.ts';

/** Controls of both kinds, what turns the direction of text, and separators of lines. */
const ACTS = /[\p{Cc}\p{Cf}\u2028\u2029]/u;
const actIn = (text: string) => ACTS.exec(text.replaceAll('\n', ''));
const ESC = '\u001b';
const STEERING = '\u001b]0;owned\u0007\u001b[2J\u009b31m\u202egnp\u2066\u2028\u007f';
const MARK = 'words-of-the-server';
/** One is refused, the other one is a name like any other. */
const REFUSED = 'bad\u009b2J\u001b[31m.txt';
const TURNED = 'turned\u202egnp\u2066.txt';

it.concurrent('hostile words are text in all that is printed, and in the log', async (context) => {
  const { place, sandbox, job } = await quietJob(context);
  const stdout = job.tasks[0]?.files.stdout ?? '';
  fs.writeFileSync(stdout, 'hello\n');
  for (const name of [REFUSED, TURNED]) fs.writeFileSync(path.join(path.dirname(stdout), name), 'x');
  place.configure(sandbox, { results: { intervalSeconds: 0.5 } });
  const said: [string, string][] = [];
  const ask = async (...args: string[]) => {
    const { stdout, stderr } = await place.agent(...args);
    said.push([args.join(' '), `${stdout}${stderr}`]);
    return stdout;
  };

  await ask('watch', job.jobId, '--task', job.tasks[0]?.taskId ?? '');
  await ask('sync', job.jobId);
  await ask('verify', job.jobId);
  const json = await ask('status', job.jobId, '--json');
  const { jobs } = JSON.parse(json) as { jobs: [{ results: { notSynced: { name: string }[] } }] };
  expect(jobs[0].results.notSynced.map(({ name }) => path.basename(name))).toEqual([REFUSED]);
  expect(await ask('status', job.jobId)).toContain('bad\\u{009B}2J\\u{001B}[31m.txt');
  expect(JSON.parse(await ask('verify', job.jobId, '--json'))).toMatchObject({ jobId: job.jobId });

  const words = { kind: 'fault', text: `${MARK} ${STEERING}` } as const;
  await sandbox.fault(words);
  for (const args of [
    ['sync', job.jobId],
    ['sync', job.jobId, '--json'],
    ['verify', job.jobId],
    ['check', '--job', job.jobId],
  ]) {
    await ask(...args);
  }
  const agent = await place.run();
  await until('the fault to be said', () => agent.log.some(({ err }) => String(err).includes(MARK)));
  await until('the error of the job', async () => (await place.status()).jobs[0]?.error?.message.includes(MARK));
  expect(await ask('status')).toContain(MARK);
  await ask('status', '--json');
  await ask('status', job.jobId);
  await sandbox.clearFaults();
  fs.writeFileSync(path.join(path.dirname(stdout), `another ${REFUSED}`), 'x');
  await until('the name to be refused', () => agent.logged('results refused').length > 0);
  await agent.kill();
  said.push(['run', agent.stderr]);

  expect(said.filter(([, text]) => text.includes(MARK)).length).toBeGreaterThan(7);
  for (const [command, text] of said) expect(actIn(text), `${command}: ${JSON.stringify(text)}`).toBeNull();
});

it.concurrent('hostile words are text on a terminal', needs('script'), async (context) => {
  const { place, sandbox, job } = await quietJob(context);
  place.configure(sandbox, { watch: [{ job: job.jobId, tasks: job.tasks.map(({ taskId }) => taskId) }] });
  fs.writeFileSync(path.join(path.dirname(job.tasks[0]?.files.stdout ?? ''), REFUSED), 'x');
  const operation = 'DownloadPartsOfJobFilesFromCluster';
  await sandbox.fault({ operation, kind: 'fault', text: `${MARK} ${STEERING}` });
  for (const command of ['run', 'status --watch', `check --job ${job.jobId}`]) {
    const line = `stty cols 100 rows 30 -echo; exec '${process.execPath}' '${PROGRAM}' ${command} -c '${place.configFile}'`;
    const env = { PATH: process.env['PATH'], TERM: 'xterm-256color', LC_ALL: 'C.UTF-8' };
    const terminal = spawn('script', ['-qefc', line, '/dev/null'], { cwd: place.directory, env });
    context.onTestFinished(() => void terminal.kill('SIGKILL'));
    const ended = once(terminal, 'close');
    let text = '';
    terminal.stdout.setEncoding('utf8').on('data', (written) => {
      text += written;
    });
    await until(`${MARK} on the terminal`, () => text.includes(MARK));
    if (command === 'run') await until('the name', () => text.includes('results refused'));
    // A check ends by itself; it would leave its directory.
    if (!command.startsWith('check')) terminal.stdin.write('\u0003');
    await ended;
    // Colours and the screen of a status that stays are of the program itself.
    const own = new RegExp(`${ESC}\\[(?:[0-9;]*m|\\?1049[hl]|\\?25[hl]|[HKJ])|\r`, 'g');
    expect(actIn(text.replaceAll(own, '')), JSON.stringify(text)).toBeNull();
  }
});
