/**
 * Commands that root says beside the agent of another user, whose state directory may be in the hands of somebody who
 * took over that user: nothing of root's is read into it, written, emptied or removed, and nothing waits for ever.
 */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, type TestContext } from 'vitest';
import { EXIT } from '../../../src/errors.ts';
import { requestOf, submitQuietJob } from '../../support/e2e-job.ts';
import { NOBODY, Place } from '../../support/e2e-place.ts';
import { PATIENCE, until } from '../../support/e2e-until.ts';
import { needsThat } from '../../support/needs.ts';

const AS_ROOT = needsThat(process.getuid?.() === 0, 'commands of root on the state of another user: they need root');

/** A place whose agent is nobody's, with a quiet job; skips the test where that user cannot run the program. */
async function foreignPlace(context: TestContext) {
  const place = Place.make(context);
  place.giveUpRights(context);
  const set = await submitQuietJob(place);
  fs.chownSync(set.sandbox.passwordFile, NOBODY, NOBODY);
  for (const directory of ['cluster', 'cluster/secrets']) fs.chmodSync(path.join(place.directory, directory), 0o755);
  place.configure(set.sandbox, { watch: [requestOf(set.job)], results: { enabled: false } });
  return { place, ...set };
}

/** Files of root's, in a directory of root's: how they are now, and that it stays so. */
function treasure({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const directory = fs.mkdtempSync('/tmp/jobtail-root-');
  onTestFinished(() => fs.rmSync(directory, { recursive: true, force: true }));
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

describe('in the state of another user', { ...PATIENCE, ...AS_ROOT, concurrent: true }, () => {
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

describe('a command of root', { ...PATIENCE, ...AS_ROOT, concurrent: true }, () => {
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
    // The secret is one that only root can read; the agent has its session.
    fs.chownSync(sandbox.passwordFile, 0, 0);
    fs.chmodSync(sandbox.passwordFile, 0o600);
    expect(await place.agentAsRoot('verify', job.jobId)).toMatchObject({ code: 0 });
    expect((await place.agentAsRoot('check')).stdout).toMatch(/^✓ sign-in/m);
    expect(await place.agentAsRoot('sync', job.jobId)).toMatchObject({ code: 0 });
    expect(await place.agentAsRoot('unwatch', job.jobId)).toMatchObject({ code: 0 });
    const ofRoot = execFileSync('find', [place.state, place.mirror, '-uid', '0'], { encoding: 'utf8' });
    expect(ofRoot).toBe('');
    expect(fs.readFileSync(mirror, 'utf8')).toBe('hello\n');
  });

  it('works while no agent runs, and where only root can enter', async (context) => {
    const { place, sandbox, job, task } = await foreignPlace(context);
    // As systemd keeps the state of a dynamic user.
    const inner = path.join(place.directory, 'private');
    const own = path.join(inner, 'agent');
    fs.mkdirSync(own, { recursive: true });
    fs.chownSync(own, NOBODY, NOBODY);
    fs.chownSync(inner, 0, 0);
    fs.chmodSync(inner, 0o700);
    fs.symlinkSync('private/agent', path.join(place.directory, 'link'));
    const state = path.join(place.directory, 'link', 'state');
    place.configure(sandbox, { state: { directory: state }, results: { enabled: false } });
    fs.chownSync(place.configFile, 0, 0);
    fs.chmodSync(place.configFile, 0o600);
    fs.writeFileSync(task.files.stdout, 'hello\n');
    expect(await place.agentAsRoot('watch', job.jobId, '--task', task.taskId)).toMatchObject({ code: 0 });
    expect(await place.agentAsRoot('sync', job.jobId)).toMatchObject({ code: 0 });
    await place.mirrored(job, 'stdout');
    expect(fs.statSync(path.join(state, 'agent.db')).uid).toBe(NOBODY);
    expect(execFileSync('find', [own, place.mirror, '-uid', '0'], { encoding: 'utf8' })).toBe('');
  });

  it('gives all rights of root up where none can be kept', async (context) => {
    const { place, job, task } = await foreignPlace(context);
    fs.writeFileSync(task.files.stdout, 'hello\n');
    const withoutSetpriv = { PATH: place.directory };
    const ended = await place.startAsRoot(['watch', job.jobId, '--task', task.taskId], withoutSetpriv).ended;
    expect(ended).toMatchObject({ code: 0 });
    expect(execFileSync('find', [place.state, place.mirror, '-uid', '0'], { encoding: 'utf8' })).toBe('');
  });

  it('is refused where the way to the state is by a link of somebody else', async (context) => {
    const { place, sandbox } = await foreignPlace(context);
    const root = treasure(context);
    await (await place.run()).kill();
    const elsewhere = path.join(root.directory, 'state');
    for (const uid of [0, 4711]) {
      const link = path.join(place.directory, `link-${uid}`);
      fs.mkdirSync(elsewhere);
      fs.chownSync(elsewhere, uid, uid);
      fs.symlinkSync(elsewhere, link);
      fs.lchownSync(link, NOBODY, NOBODY);
      place.configure(sandbox, { state: { directory: link } });
      const refused = await place.agentAsRoot('watch', '501', '--task', '1');
      expect(refused).toMatchObject({ code: EXIT.local, stdout: '' });
      expect(refused.stderr).toContain(`belongs to the user ${uid}, by way of the user ${NOBODY}`);
      expect(fs.readdirSync(elsewhere)).toEqual([]);
      fs.rmdirSync(elsewhere);
    }
  });

  it('is not the agent itself: that is to run as the owner of its state', async (context) => {
    const { place } = await foreignPlace(context);
    await (await place.run()).kill();
    const refused = await place.agentAsRoot('run');
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(`belongs to the user ${NOBODY}, not to root`);
  });

  it('ends with what it started, and as that ended', async (context) => {
    const { place, job, task } = await foreignPlace(context);
    fs.writeFileSync(task.files.stdout, 'hello\n');
    await place.run();
    await place.mirrored(job, 'stdout');
    const following = place.startAsRoot(['tail', job.jobId, '-f']);
    const childOf = (pid: number) => fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    await until('its output', () => following.stdout.includes('hello'));
    const child = childOf(following.pid);
    expect(fs.readFileSync(`/proc/${child}/status`, 'utf8')).toMatch(/^Uid:\t65534\t65534\t65534/m);
    following.signal('SIGTERM');
    expect(await following.ended).toMatchObject({ code: 0, signal: null });
    expect(fs.existsSync(`/proc/${child}`)).toBe(false);
    // Killed, it leaves nothing behind.
    const killed = place.startAsRoot(['tail', job.jobId, '-f']);
    await until('its output', () => killed.stdout.includes('hello'));
    const orphan = childOf(killed.pid);
    await killed.kill();
    await until('the end of it', () => !fs.existsSync(`/proc/${orphan}`));
    expect(await place.agentAsRoot('status', '404')).toMatchObject({ code: EXIT.notFound });
  });
});
