/** What machines of other people do to the program: readers that go away, full disks, limits, terminals of no size. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { expect, it } from 'vitest';
import { taskOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { PROGRAM } from '../../support/e2e-program.ts';
import { needs } from '../../support/needs.ts';

const PACKAGING = path.join(path.dirname(PROGRAM), '../../packaging');

/** What a script of bash prints, with `$A` for the program and `$C` for its configuration. */
function bash(place: Place, script: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const { NO_COLOR: _, ...own } = process.env;
  const all = { ...own, A: `${process.execPath} ${PROGRAM}`, C: place.configFile, ...env };
  return new Promise((resolve) => {
    execFile('bash', ['-c', script], { env: all, cwd: place.directory }, (_error, stdout) => resolve(stdout));
  });
}

it.concurrent('a program of the packages calls the service below a limit of virtual memory, and without its option it names that limit', {
  ...needs('bash'),
}, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  place.configure(sandbox, { service: { jobsUrl: `${sandbox.baseUrl}/JobManagementWs` } });
  fs.mkdirSync(path.join(place.directory, 'bin'));
  fs.mkdirSync(path.join(place.directory, 'lib'));
  // The Node.js of the packages is newer than the oldest one that is tested.
  const isUnknown = (option: string) => !process.allowedNodeEnvironmentFlags.has(option);
  const line = fs.readFileSync(path.join(PACKAGING, 'agent.sh'), 'utf8');
  const known = isUnknown('--disable-sigusr1') ? line.replace(' --disable-sigusr1', '') : line;
  fs.writeFileSync(path.join(place.directory, 'bin/agent'), known);
  fs.symlinkSync(process.execPath, path.join(place.directory, 'lib/node'));
  fs.symlinkSync(path.dirname(PACKAGING), path.join(place.directory, 'lib/jobtail'));
  const limited = (command: string) => bash(place, `ulimit -v 8388608; ${command} jobs -c $C 2>&1`);
  expect(await limited('sh bin/agent')).toBe('the middleware reports no job\n');
  expect(await limited('$A')).toMatch(
    /may not reserve enough virtual memory.*\n.*NODE_OPTIONS=--disable-wasm-trap-handler/,
  );
});

it.concurrent('a command whose output is not read or not written does not end as if it had succeeded', {
  ...needs('bash'),
}, async (context) => {
  const place = Place.make(context);
  const sandbox = await place.startSandbox();
  place.configure(sandbox, { service: { jobsUrl: `${sandbox.baseUrl}/JobManagementWs` } });
  const job = await sandbox.submit({ tasks: [{}] });
  fs.writeFileSync(taskOf(job).files.stdout, 'line\n'.repeat(50_000));
  await place.agent('watch', job.jobId, '--no-wait');
  const ends = (script: string) => bash(place, `${script}; echo "exit \${PIPESTATUS[0]}"`, { J: job.jobId });
  expect(await ends('$A wait $J --tail -c $C | head -c 1')).toMatch(/exit 141\n$/);
  for (const [command, code] of [
    ['jobs -c $C', 8],
    ['status -c $C', 8],
    ['-c $C grep line', 2],
    ['errors --json -c $C', 2],
  ] as const)
    expect(await ends(`$A ${command} 2>&1 > /dev/full`)).toBe(
      `agent: the output cannot be written: no space left on device (write ENOSPC)\nexit ${code}\n`,
    );
  expect(await ends('$A jobs -c nothing.yaml 2> /dev/full')).toBe('exit 3\n');
});

it.concurrent('CI=1 adds no colours to a pipe, and FORCE_COLOR does', needs('bash'), async (context) => {
  const place = Place.make(context);
  place.configure(await place.startSandbox());
  const mirror = place.mirrorOf('501', '9001', 'stdout');
  fs.mkdirSync(path.dirname(mirror), { recursive: true });
  fs.writeFileSync(mirror, '\u001b[31mone\u001b[0m\n');
  expect(await bash(place, '$A tail 501 --no-prefix -c $C', { CI: '1' })).toBe('one\n');
  expect(await bash(place, '$A grep one --config $C', { CI: '1' })).toBe('501/9001 stdout:\u001b[31mone\u001b[0m\n');
  expect(await bash(place, '$A tail 501 --no-prefix -c $C', { FORCE_COLOR: '1' })).toContain('\u001b[31m');
});

it.concurrent('a command runs without HOME and passwd entry, without TMPDIR, and in a directory that was removed', {
  ...needs('bash', 'setpriv'),
}, async (context) => {
  if (process.getuid?.() !== 0) context.skip('another user id needs root');
  const place = Place.make(context);
  place.giveUpRights(context);
  place.configure(await place.startSandbox());
  fs.chmodSync(place.configFile, 0o644);
  fs.chownSync(place.directory, 54_321, 54_321);
  const stranger = `setpriv --reuid=54321 --regid=54321 --clear-groups env -i TMPDIR=/no/such PATH="$PATH" $A check -c $C`;
  const secret = await bash(place, `chmod -R a+rX .; ${stranger}`);
  expect(secret).toMatch(/✓ results|results/);
  expect(secret).not.toMatch(/defect|uv_os_homedir|no\/such/);
  expect(await bash(place, 'mkdir gone; cd gone; rmdir ../gone; $A jobs -c $C 2>&1')).toContain('service.jobsUrl');
});

it.concurrent('agent run ends with its terminal, and says by its pid file on which host it runs', {
  ...needs('python3'),
}, async (context) => {
  const place = Place.make(context);
  place.configure(await place.startSandbox());
  const pty = `import os,pty,sys,time
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
said = b''
while b'agent ready' not in said: said += os.read(fd, 4096)
print(open('state/agent.pid').read(), flush=True)
os.close(fd)
os.waitpid(pid, 0)
print(os.path.exists('state/agent.pid'))`;
  fs.writeFileSync(path.join(place.directory, 'terminal.py'), pty);
  const ended = await bash(place, 'python3 terminal.py $A run -c $C 2>&1');
  expect(ended.trim().split(/\s+/)).toEqual([expect.stringMatching(/^\d+$/), os.hostname(), 'agent', 'False']);
});
