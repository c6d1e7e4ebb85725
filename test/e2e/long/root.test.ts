/**
 * Commands of root on the state of another, perhaps hostile user: nothing of root is read, written or removed, and they have
 * no right of root left.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, type TestContext } from 'vitest';
import { EXIT } from '../../../src/errors.ts';
import { foreignPlace } from '../../support/e2e-job.ts';
import { NOBODY, type Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { needsThat } from '../../support/needs.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const AS_ROOT = needsThat(process.getuid?.() === 0, 'commands of root on the state of another user: they need root');

/** Files of root's, in a directory of root's: how they are now, and that it stays so. */
function treasure({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const directory = temporaryDirectory('/tmp', { onTestFinished });
  const text = path.join(directory, 'text');
  fs.writeFileSync(text, 'only root may change this\n', { mode: 0o644 });
  const database = path.join(directory, 'database');
  const db = new Database(database);
  db.exec("CREATE TABLE jobs (job_id TEXT); INSERT INTO jobs VALUES ('of root'); PRAGMA user_version = 3;");
  db.close();
  const look = () =>
    execFileSync('sh', ['-c', 'stat -c "%n %s %y %a %u %g" . ./*; sha256sum ./*'], {
      cwd: directory,
      encoding: 'utf8',
    });
  const before = look();
  return { directory, text, database, isUntouched: () => expect(look()).toBe(before) };
}

/** Files of the state, each with a command that would fall for something else in its place. */
const FILES = {
  wake: ['watch', '501', '--task', '1'],
  'agent.db': ['watch', '501', '--task', '1'],
  'agent.lock': ['status'],
  'agent.pid': ['status'],
} as const;

/** What somebody could put in the place of a file of the state; `there` is of root. */
const TRAPS: Record<string, (at: string, there: ReturnType<typeof treasure>) => void> = {
  'a link to a text': (at, { text }) => fs.symlinkSync(text, at),
  'a link to a database': (at, { database }) => fs.symlinkSync(database, at),
  'a hard link': (at, { database }) => fs.linkSync(database, at),
  'a pipe': (at) => execFileSync('mkfifo', ['-m', '666', at]),
};

describe('in the state of another user', { ...AS_ROOT, concurrent: true }, () => {
  it('no link and no pipe leads root anywhere', async (context) => {
    const { place, sandbox } = await foreignPlace(context);
    const root = treasure(context);
    await (await place.run()).kill();
    await sandbox.stop();
    const kept = path.join(place.directory, 'kept');
    // Whoever took over the user holds the lock as the agent does, so that commands do not take it.
    const holding = (file: string) => {
      if (file !== 'wake' && file !== 'agent.db') return undefined;
      return new Database(path.join(place.state, 'agent.lock')).exec('BEGIN EXCLUSIVE');
    };
    for (const [name, set] of Object.entries(TRAPS)) {
      for (const [file, [command, ...args]] of Object.entries(FILES)) {
        const at = path.join(place.state, file);
        if (fs.existsSync(at)) fs.renameSync(at, kept);
        set(at, root);
        if (name !== 'a hard link') fs.lchownSync(at, NOBODY, NOBODY);
        const lock = holding(file);
        const { signal, stderr } = await place.agentAsRoot(command, ...args);
        const isDefect = stderr.includes('this is a defect');
        expect({ name, file, signal, isDefect }).toEqual({ name, file, signal: null, isDefect: false });
        lock?.close();
        root.isUntouched();
        fs.rmSync(at, { recursive: true, force: true });
        if (fs.existsSync(kept)) fs.renameSync(kept, at);
        const owners = fs.readdirSync(place.state).map((each) => fs.lstatSync(path.join(place.state, each)).uid);
        expect(new Set(owners), `${name} as ${file}`).toEqual(new Set([NOBODY]));
      }
    }
  });
});

describe('a command of root', { ...AS_ROOT, concurrent: true }, () => {
  it('does what it is reported beside a running agent, as the user of the state', async (context) => {
    const { place, sandbox, job, task, mirror } = await foreignPlace(context);
    fs.writeFileSync(task.files.stdout, 'hello\n');
    const agent = await place.run();
    await place.mirrored(job, 'stdout');
    const second = await sandbox.submit({ tasks: [{}] });
    const [reported] = second.tasks;
    expect(await place.agentAsRoot('watch', second.jobId, '--task', reported?.taskId ?? '')).toMatchObject({ code: 0 });
    expect((await place.agentAsRoot('tail', job.jobId)).stdout).toContain('hello');
    const { stdout } = await place.agentAsRoot('status', '--json');
    expect(JSON.parse(stdout)).toMatchObject({ agent: { running: true, pid: agent.pid } });
    expect(await place.agentAsRoot('verify', job.jobId)).toMatchObject({ code: 0 });
    expect(await place.agentAsRoot('sync', job.jobId)).toMatchObject({ code: 0 });
    expect(await place.agentAsRoot('unwatch', job.jobId)).toMatchObject({ code: 0 });
    const ofRoot = execFileSync('find', [place.state, place.mirror, '-uid', '0'], { encoding: 'utf8' });
    expect(ofRoot).toBe('');
    expect(fs.readFileSync(mirror, 'utf8')).toBe('hello\n');
  });

  it('reads the credentials of the unit beside its configuration, where root alone can read them', async (context) => {
    const { place, sandbox } = await foreignPlace(context);
    const directory = temporaryDirectory('/tmp', context);
    fs.chmodSync(directory, 0o755);
    const config = path.join(directory, 'config.yaml');
    fs.cpSync(sandbox.passwordFile, path.join(directory, 'password'));
    fs.chmodSync(path.join(directory, 'password'), 0o600);
    const auth = { passwordFile: undefined, passwordCredential: 'password' };
    fs.writeFileSync(config, place.configText(sandbox, { auth }));
    const { code, stdout } = await place.agentAsRoot('check', '-c', config);
    expect(stdout).toMatch(/^[✓+] sign-in/m);
    expect(code).toBe(0);
    fs.rmSync(path.join(directory, 'password'));
    expect((await place.agentAsRoot('check', '-c', config)).stdout).toContain('write the secret into it');
  });

  it('is refused where the path of the state leads through a link of another user', async (context) => {
    const { place, sandbox } = await foreignPlace(context);
    const root = treasure(context);
    const elsewhere = path.join(root.directory, 'state');
    const config = path.join(root.directory, 'config.yaml');
    for (const uid of [0, 4711]) {
      const link = path.join(place.directory, `link-${uid}`);
      fs.mkdirSync(elsewhere);
      fs.chownSync(elsewhere, uid, uid);
      fs.symlinkSync(elsewhere, link);
      fs.lchownSync(link, NOBODY, NOBODY);
      fs.writeFileSync(config, place.configText(sandbox, { state: { directory: link } }));
      const refused = await place.agentAsRoot('watch', '-c', config, '501', '--task', '1');
      expect(refused).toMatchObject({ code: EXIT.local, stdout: '' });
      expect(refused.stderr).toContain(`belongs to the user ${uid === 0 ? 'root' : uid}, by way of the user nobody`);
      expect(fs.readdirSync(elsewhere)).toEqual([]);
      fs.rmdirSync(elsewhere);
    }
  });
});

/** With a configuration of root's for the place elsewhere. */
async function placeOfTwo(context: TestContext) {
  const { place, ...set } = await foreignPlace(context);
  const etc = temporaryDirectory(undefined, context);
  const ofRoot = { file: path.join(etc, 'config.yaml'), passwordFile: path.join(etc, 'password') };
  fs.copyFileSync(set.sandbox.passwordFile, ofRoot.passwordFile);
  fs.chmodSync(ofRoot.passwordFile, 0o600);
  const text = place.configText({ ...set.sandbox, passwordFile: ofRoot.passwordFile }, { results: { enabled: false } });
  fs.writeFileSync(ofRoot.file, text, { mode: 0o600 });
  return { place, ofRoot, ...set };
}

/** A program that prints its password, and keeps what it was when it ran. */
function passwordProgram(place: Place, passwordFile: string) {
  const was = path.join(place.directory, 'was');
  const script = path.join(place.directory, 'password.sh');
  fs.writeFileSync(script, `#!/bin/sh\ncat /proc/self/status > ${was}\ncat ${passwordFile}\n`, { mode: 0o755 });
  return { script, status: () => fs.readFileSync(was, 'utf8') };
}

const NO_RIGHTS =
  /^Uid:\t65534\t65534\t65534\t65534$[\s\S]*^CapInh:\t0+\nCapPrm:\t0+\nCapEff:\t0+\n[\s\S]*^CapAmb:\t0+$/m;

it.concurrent(
  'a command of root has no right of root left in any of its threads, and opens no debugger',
  AS_ROOT,
  async (context) => {
    const { place, ofRoot, job, task } = await placeOfTwo(context);
    fs.writeFileSync(task.files.stdout, 'hello\n');
    await place.run();
    await place.mirrored(job, 'stdout');
    const following = place.startAsRoot(['tail', '-c', ofRoot.file, job.jobId, '-f']);
    await until('its output', () => following.stdout.includes('hello'));
    const threads = fs.readdirSync(`/proc/${following.pid}/task`);
    expect(threads.length).toBeGreaterThan(1);
    for (const thread of threads)
      expect(fs.readFileSync(`/proc/${following.pid}/task/${thread}/status`, 'utf8')).toMatch(NO_RIGHTS);
    following.signal('SIGUSR1');
    fs.appendFileSync(task.files.stdout, 'more\n');
    await until('more of its output', () => following.stdout.includes('more'));
    following.signal('SIGTERM');
    expect(await following.ended).toMatchObject({ code: 143, stderr: '' });
  },
);

it.concurrent('the agent opens no debugger at SIGUSR1 and goes on', AS_ROOT, async (context) => {
  const { place, job, task } = await placeOfTwo(context);
  const agent = await place.run();
  agent.signal('SIGUSR1');
  fs.writeFileSync(task.files.stdout, 'hello\n');
  await place.mirrored(job, 'stdout');
  expect(agent.stderr).not.toContain('Debugger');
});

it.concurrent(
  'a configuration of another user is used as that user, and its programs have no right of root',
  AS_ROOT,
  async (context) => {
    const { place, sandbox } = await placeOfTwo(context);
    const { script, status } = passwordProgram(place, sandbox.passwordFile);
    const auth = { passwordFile: undefined, passwordCommand: [script] };
    place.configure(sandbox, { auth });
    expect((await place.agentAsRoot('check')).stdout).toMatch(/^[✓+] sign-in/m);
    expect(status()).toMatch(NO_RIGHTS);
    fs.rmSync(path.join(place.directory, 'was'));
    // Its state is root's, or the usual one: that makes no difference.
    const ofRoot = temporaryDirectory(undefined, context);
    place.configure(sandbox, { auth, state: { directory: ofRoot } });
    await place.agentAsRoot('check');
    expect(status()).toMatch(NO_RIGHTS);
  },
);

it.concurrent('the agent of root refuses a configuration that another user can change', AS_ROOT, async (context) => {
  const { place, ofRoot, sandbox } = await placeOfTwo(context);
  const { script } = passwordProgram(place, sandbox.passwordFile);
  place.configure(sandbox, { auth: { passwordFile: undefined, passwordCommand: [script] } });
  const link = path.join(path.dirname(ofRoot.file), 'link.yaml');
  fs.symlinkSync(place.configFile, link);
  for (const file of [place.configFile, link]) {
    const refused = await place.agentAsRoot('run', '-c', file);
    expect(refused).toMatchObject({ code: EXIT.config });
    expect(refused.stderr).toContain('other users than root can change this file');
  }
  expect(fs.existsSync(path.join(place.directory, 'was'))).toBe(false);
});

it.concurrent('a command of root is refused where two users can change the configuration', AS_ROOT, async (context) => {
  const { place } = await placeOfTwo(context);
  fs.chownSync(place.configFile, 4711, 4711);
  const refused = await place.agentAsRoot('status');
  expect(refused).toMatchObject({ code: EXIT.local });
  expect(refused.stderr).toContain('can be changed by the users');
});

it.concurrent('a command of root is refused where the owner of the state cannot reach it', AS_ROOT, async (context) => {
  const { place, ofRoot, sandbox } = await placeOfTwo(context);
  const outer = path.join(path.dirname(ofRoot.file), 'private');
  fs.mkdirSync(path.join(outer, 'state'), { recursive: true, mode: 0o700 });
  fs.chownSync(path.join(outer, 'state'), NOBODY, NOBODY);
  const state = { directory: path.join(outer, 'state') };
  fs.writeFileSync(ofRoot.file, place.configText(sandbox, { state }));
  const refused = await place.agentAsRoot('status', '-c', ofRoot.file);
  expect(refused).toMatchObject({ code: EXIT.local, stdout: '' });
  expect(refused.stderr).toContain('cannot reach it');
});
