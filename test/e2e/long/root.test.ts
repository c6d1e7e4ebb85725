/** Commands of root on the state of another, perhaps hostile user: nothing of root is read, written or removed. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, type TestContext } from 'vitest';
import { EXIT } from '../../../src/errors.ts';
import { foreignPlace } from '../../support/e2e-job.ts';
import { NOBODY } from '../../support/e2e-place.ts';
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
    expect(stdout).toMatch(/^✓ sign-in/m);
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
