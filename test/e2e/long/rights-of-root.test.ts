/** What a command of root may still do once it works for the agent of another user: nothing of root's. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it, type TestContext } from 'vitest';
import { EXIT } from '../../../src/errors.ts';
import { foreignPlace } from '../../support/e2e-job.ts';
import { NOBODY, type Place } from '../../support/e2e-place.ts';
import { until } from '../../support/e2e-until.ts';
import { needsThat } from '../../support/needs.ts';
import { temporaryDirectory } from '../../support/temp-directory.ts';

const AS_ROOT = needsThat(process.getuid?.() === 0, 'commands of root on the state of another user: they need root');

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
