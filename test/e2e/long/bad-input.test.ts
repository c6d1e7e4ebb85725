/** What people get wrong: each time the message names what it is about and what to do, and nothing is lost. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { taskOf } from '../../support/e2e-job.ts';
import { NOBODY, Place } from '../../support/e2e-place.ts';
import type { Ended } from '../../support/e2e-program.ts';
import { PATIENCE } from '../../support/e2e-until.ts';

/** No server: these commands do not get that far. */
const NOWHERE = { baseUrl: 'http://127.0.0.1:9', username: 'alice', passwordFile: '/nonexistent/password' };

function expectRefused(ended: Ended, code: number, ...words: string[]): void {
  expect(ended).toMatchObject({ code, signal: null, stdout: '' });
  for (const word of words) expect(ended.stderr).toContain(word);
  expect(ended.stderr, 'a person can do without the stack').not.toMatch(/^ +at /m);
}

describe.concurrent('a wrong configuration', PATIENCE, () => {
  it('with an unknown key names it, its place and the nearest one', async (context) => {
    const place = Place.make(context);
    place.writeConfig('poll:\n  minIntervalSecond: 2\nservice: {}\n');
    const ended = await place.agent('run');
    expectRefused(ended, 3, `${place.configFile}:2:3: poll.minIntervalSecond: unknown key`);
    expect(ended.stderr).toContain('did you mean minIntervalSeconds?');
    expect(ended.stderr).toContain('config.example.yaml explains every key');
  });

  it('with a secret in it is refused without showing the secret', async (context) => {
    const place = Place.make(context);
    place.configure(NOWHERE, { auth: { password: 'hunter2-hunter2' } });
    const ended = await place.agent('run');
    expectRefused(ended, 3, 'auth.password', 'passwordFile');
    expect(ended.stderr).not.toContain('hunter2');
  });

  it('loses nothing: what is watched is there when it is mended', async (context) => {
    const place = Place.make(context);
    place.configure(NOWHERE);
    expect(await place.agent('watch', '501', '--task', '9001')).toMatchObject({ code: 0 });
    const mirror = place.mirrorOf('501', '9001', 'stdout');
    fs.writeFileSync(mirror, 'what was mirrored before\n');
    place.configure(NOWHERE, { poll: { minIntervalSeconds: 'soon' } });
    for (const args of [
      ['run'],
      ['watch', '502'],
      ['unwatch', '501'],
      ['sync', '501'],
      ['verify', '501'],
      ['status'],
    ]) {
      expectRefused(await place.agent(...args), 3, 'poll.minIntervalSeconds');
    }
    place.configure(NOWHERE);
    expect((await place.status()).jobs).toMatchObject([{ jobId: '501', state: 'watched', error: null }]);
    expect(fs.readFileSync(mirror, 'utf8')).toBe('what was mirrored before\n');
  });
});

describe.concurrent('wrong arguments', PATIENCE, () => {
  const wrong = [
    { args: ['watch', 'seven'], words: ['"seven" is no job id', 'a whole number from 1 to 2^63 - 1'] },
    { args: ['watch', '--', '-5'], words: ['"-5" is no job id'] },
    { args: ['sync', '0'], words: ['"0" is no job id'] },
    { args: ['watch', '9223372036854775808'], words: ['"9223372036854775808" is no job id'] },
    { args: ['unwatch', '1.5'], words: ['"1.5" is no job id'] },
    { args: ['status', '7x'], words: ['"7x" is no job id'] },
    { args: ['sync', ''], words: ['"" is no job id'] },
    { args: ['verify', '0x10'], words: ['"0x10" is no job id'] },
    { args: ['watch', '501', '--task', 'one'], words: ['"one" is no task id'] },
    {
      args: ['watch', '501', '--file', 'output'],
      words: ['"output" is no live file', 'stdout, stderr, log, progress'],
    },
    { args: ['watch'], words: ['the id of a job is missing', '--mine'] },
    { args: ['unwatch', '501', '--mine'], words: ['--mine is for all jobs, not for job 501 alone'] },
    { args: ['watch', '501', '--include', 'heat-*'], words: ['--include goes with --mine'] },
    { args: ['watch', '501', '--max-age', '3'], words: ['--max-age goes with --mine'] },
    { args: ['watch', '501', '--max-jobs', '3'], words: ['--max-jobs goes with --mine'] },
    { args: ['watch', '--mine', '--max-jobs', '0'], words: ['"0" is no number of jobs from 1 to 100000'] },
    { args: ['watch', '--mine', '--exclude', '**/**/a/**/b'], words: ['is no pattern', 'at most two **'] },
    { args: ['watch', '--mine', '--file', 'stdout'], words: ["'--mine' cannot be used with option '--file"] },
    { args: ['watch', '--mine', '--max-age', '4000'], words: ['"4000" is no number of days'] },
    { args: ['run', '--daemon'], words: ["unknown option '--daemon'"] },
  ];

  it.for(wrong)('$args', async ({ args, words }, context) => {
    const place = Place.make(context);
    place.configure(NOWHERE);
    expectRefused(await place.agent(...args), 2, ...words);
    expect(fs.existsSync(place.state), 'nothing was begun').toBe(false);
  });

  it('an unknown command, and no command at all', async (context) => {
    const place = Place.make(context);
    const unknown = await place.plain(['follow']);
    expectRefused(unknown, 2, "unknown command 'follow'", 'agent --help');
    const none = await place.plain([]);
    expectRefused(none, 2, 'jobtail follows the jobs of a cluster', 'agent --help lists all commands');
    const help = await place.plain(['--help']);
    expect(help).toMatchObject({ code: 0, stderr: '' });
    expect(help.stdout).toContain('\nExit codes');
  });
});

describe.concurrent('directories that cannot be used', PATIENCE, () => {
  it('below a file: the key, the directory and what to do are named', async (context) => {
    const place = Place.make(context);
    const file = path.join(place.directory, 'file');
    fs.writeFileSync(file, 'not a directory');
    for (const section of ['mirror', 'state']) {
      place.configure(NOWHERE, { [section]: { directory: path.join(file, 'below') } });
      const said = `${section}.directory ${file}/below cannot be used`;
      expectRefused(await place.agent('run'), 8, said, `set ${section}.directory to another directory`);
    }
  });

  it('without rights while the agent runs: the job says so, and goes on when they are back', async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const passwordFile = path.join(place.directory, 'password');
    fs.copyFileSync(sandbox.passwordFile, passwordFile);
    if (process.getuid?.() === 0) fs.chownSync(passwordFile, NOBODY, NOBODY);
    place.giveUpRights(context);
    const job = await sandbox.submit({ tasks: [{}] });
    const task = taskOf(job);
    fs.writeFileSync(task.files.stdout, 'before\n');
    place.configure(
      { baseUrl: sandbox.baseUrl, username: sandbox.username, passwordFile },
      { results: { enabled: false } },
    );
    const agent = place.start(['run']);
    await agent.logs('agent ready', { jobs: 0 });
    fs.chmodSync(place.mirror, 0o500);
    const order = ['watch', job.jobId, '--task', task.taskId];
    expectRefused(await place.agent(...order), 8, `mirror.directory ${place.mirror} cannot be used`);
    fs.chmodSync(place.mirror, 0o700);
    expect(await place.agent(...order)).toMatchObject({ code: 0 });
    await place.mirrored(job, 'stdout');

    const mirror = place.mirrorOf(job.jobId, task.taskId, 'stdout');
    const live = path.dirname(mirror);
    fs.chmodSync(path.join(live, 'stdout.log'), 0o400);
    fs.appendFileSync(task.files.stdout, 'without rights\n');
    const said = await agent.logs('operation failed', { err: 'permission denied: ' });
    expect(said).toMatchObject({
      level: 'error',
      code: 'permission',
      scope: `job ${job.jobId} ${task.taskId}/stdout`,
    });
    const [shown] = (await place.status()).jobs;
    const error = shown?.files.find(({ file }) => file === 'stdout')?.error;
    expect(error).toMatchObject({ code: 'permission', message: expect.stringContaining(live) });
    expect(error?.hint).toContain('the right to write');
    fs.chmodSync(path.join(live, 'stdout.log'), 0o600);
    await place.mirrored(job, 'stdout');
  });
});
