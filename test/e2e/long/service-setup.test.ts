/** `agent check` and `agent init`: from nothing to a configuration that works, and what they say where it does not. */
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { taskOf } from '../../support/e2e-job.ts';
import { Place } from '../../support/e2e-place.ts';
import { PROGRAM, Program } from '../../support/e2e-program.ts';
import type { SandboxService } from '../../support/e2e-sandbox.ts';
import { needs } from '../../support/needs.ts';
import { Terminal } from '../../support/service-terminal.ts';

const serviceOf = ({ baseUrl }: SandboxService) => ({
  fileTransferUrl: `${baseUrl}/FileTransferWs`,
  namespace: 'http://sandbox.example.org/',
  baseUrl,
});

const markOf = (text: string, step: string) => new RegExp(`^(.) ${step} `, 'm').exec(text)?.[1];

describe('agent check', () => {
  it.concurrent('says that all is well, and what it found out about the server', async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    await sandbox.setHabits({ offsetEcho: 'nil', listForm: 'bare' });
    const job = await sandbox.submit({ tasks: [{}] });
    const task = taskOf(job);
    fs.writeFileSync(task.files.stdout, 'hello\n');
    place.configure(sandbox);
    const { code, stdout, stderr } = await place.agent('check', '--job', job.jobId, '--task', task.taskId);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const steps = ['configuration', 'mirrors', 'state', 'connection', 'namespace', 'sign-in', 'call'];
    for (const step of [...steps, 'live files']) {
      expect(markOf(stdout, step), `${step} in\n${stdout}`).toBe('✓');
    }
    expect(stdout).toContain('the first one: ');
    expect(stdout).toContain(`JobManagementWs answers: set service.jobsUrl to ${sandbox.jobsUrl}\n`);
    expect(stdout).toContain('1 of 4 are there');
    // It changes nothing.
    expect(fs.readdirSync(place.directory).sort()).toEqual(['cluster', 'config.yaml']);
  });

  it.concurrent('says what is wrong, what to do, and ends with the code of it', async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    place.configure(sandbox, { pool: {} });
    const config = await place.agent('check');
    expect(config.code).toBe(3);
    expect(config.stdout).toMatch(/^✗ configuration .*pool: unknown key, did you mean poll\?/m);

    const wrong = path.join(place.directory, 'wrong');
    fs.writeFileSync(wrong, 'wrong\n', { mode: 0o644 });
    place.configure({ ...sandbox, passwordFile: wrong });
    const signIn = await place.agent('check');
    expect(signIn.code).toBe(5);
    expect(markOf(signIn.stdout, 'sign-in')).toBe('✗');
    expect(signIn.stdout).toMatch(/→ \S/);
    // A warning is for a person here, wherever it goes.
    expect(signIn.stderr).toBe(
      `agent: the service: secret not protected: every user can read ${wrong}, which contains the password: chmod 600 it\n`,
    );

    place.configure(sandbox, { service: { ...serviceOf(sandbox), namespace: 'http://sandbox.example.org' } });
    const namespace = await place.agent('check');
    expect(namespace.stdout).toMatch(/^! namespace +the service has http:\/\/sandbox\.example\.org\/, the conf/m);
    expect(namespace.stdout).toContain('→ correct service.namespace');

    const https = sandbox.baseUrl.replace('http:', 'https:');
    place.configure(sandbox, { service: { ...serviceOf(sandbox), fileTransferUrl: `${https}/FileTransferWs` } });
    const tls = await place.agent('check');
    expect(tls.code).toBe(6);
    expect(tls.stdout).toMatch(/^✗ connection .*: it does not speak TLS \(/m);

    place.configure(sandbox);
    const unknown = await place.agent('check', '--job', '4711');
    expect(unknown.code).not.toBe(0);
    expect(markOf(unknown.stdout, 'call')).toBe('✗');

    await sandbox.stop();
    const down = await place.agent('check');
    expect(down.code).toBe(6);
    expect(markOf(down.stdout, 'connection')).toBe('✗');
    expect(down.stdout).toContain('sign-in       not tried');
  });
});

describe('agent init', () => {
  it.concurrent('takes flags, writes private files that work, and replaces nothing unasked', async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const file = path.join(place.directory, 'agent', 'config.yaml');
    const flags = ['--output', file, '--url', `${sandbox.baseUrl}/FileTransferWs`, '--method', 'password'];
    const rest = ['--base-url', sandbox.baseUrl, '--username', 'alice', '--secret-file', sandbox.passwordFile];
    const missing = await place.plain(['init', ...flags, '--no-check']);
    expect(missing).toMatchObject({ code: 2, stdout: '' });
    expect(missing.stderr).toContain('--namespace is missing');

    const namespace = ['--namespace', 'http://sandbox.example.org/'];
    const made = await place.plain(['init', ...flags, ...rest, ...namespace]);
    expect(made).toMatchObject({ code: 0, stderr: '' });
    expect(markOf(made.stdout, 'sign-in')).toBe('✓');
    expect(fs.statSync(file).mode & 0o777).toBe(0o600);
    const text = fs.readFileSync(file, 'utf8');
    expect(parse(text)).toMatchObject({
      service: { fileTransferUrl: `${sandbox.baseUrl}/FileTransferWs`, namespace: 'http://sandbox.example.org/' },
      auth: { method: 'password', username: 'alice', passwordFile: sandbox.passwordFile },
      mirror: { directory: './mirror' },
      state: { directory: './state' },
    });
    expect(text).toContain('`agent help configuration` lists all keys');
    expect(text).not.toContain(sandbox.secrets.password);

    const again = await place.plain(['init', ...flags, ...rest, ...namespace]);
    expect(again).toMatchObject({ code: 2, stdout: '' });
    expect(again.stderr).toContain('is there already');
    expect(fs.readFileSync(file, 'utf8')).toBe(text);
  });

  it.concurrent('sets the directories of a unit, or of its instance, and the one credential that units load', async (context) => {
    const { directory } = Place.make(context);
    const file = path.join(directory, 'config.yaml');
    const flags = ['--url', 'https://mw.example.org/FileTransferWs', '--namespace', 'urn:x', '--no-check', '--force'];
    const made = (instance: string[], method: string) => {
      const args = ['init', '--service', ...instance, '--output', file, ...flags, '--method', method, '--secret-stdin'];
      const named = ['--base-url', 'https://mw.example.org', '--username', 'alice'];
      const stdout = execFileSync(process.execPath, [PROGRAM, ...args, ...named], {
        input: 'the secret',
        encoding: 'utf8',
      });
      return { stdout, ...parse(fs.readFileSync(file, 'utf8')) };
    };
    expect(made([], 'password')).toMatchObject({
      stdout: expect.stringContaining('systemctl enable --now agent, then'),
      auth: { passwordCredential: 'password' },
      mirror: { directory: '/srv/agent' },
      state: { directory: '/var/lib/agent/state' },
    });
    expect(made(['alice'], 'openid')).toMatchObject({
      stdout: expect.stringContaining('systemctl enable --now agent@alice, then'),
      auth: { tokenCredential: 'password' },
      mirror: { directory: '/srv/agent-alice' },
      state: { directory: '/var/lib/agent-alice/state' },
    });
    expect(fs.readFileSync(path.join(directory, 'password'), 'utf8')).toBe('the secret\n');
    for (const unit of ['agent.service', 'agent@.service'])
      expect(fs.readFileSync(path.join('systemd', unit), 'utf8')).toMatch(/^LoadCredential=password:/m);
    expect(() => made(['../x'], 'password')).toThrow('is no name of an instance');
  });

  it.concurrent('asks on a terminal, and never shows the password', needs('script'), async (context) => {
    const place = Place.make(context);
    const sandbox = await place.startSandbox();
    const terminal = new Terminal(['init'], { context, cwd: place.directory, env: { HOME: place.directory } });
    const answer = async (question: string | RegExp, text: string) => {
      await terminal.shows(question);
      terminal.type(`${text}\r`);
    };
    await answer('Address of the middleware', 'not an address');
    await answer('it starts with https://', 'http://127.0.0.1:9/heappe');
    await terminal.shows('nothing answers at http://127.0.0.1:9/heappe: ');
    await answer(
      /Address of the middleware[\s\S]*Address of the middleware[\s\S]*Address of the middleware/,
      sandbox.baseUrl,
    );
    await answer('How to sign in', '');
    await answer('User name', 'alic');
    // The questions and the answers stand on the screen together.
    await terminal.shows(/^Address of the middleware \(.*\): not an address$/m);
    await terminal.shows(/^User name: alic\nPassword/m);
    await terminal.shows(/^ {2}found: REST at http/m);
    await answer('Password (not shown)', 'no such one');
    await answer('User name [alic]', 'alice');
    await answer('The secret again (not shown)', sandbox.secrets.password);
    await terminal.shows(/^next: agent jobs/m);
    expect(await terminal.ended).toBe(0);
    await terminal.shows(/✓.* sign-in/);
    expect(`${terminal.text} ${terminal.screen}`).not.toContain(sandbox.secrets.password);
    const password = path.join(place.directory, '.config', 'jobtail', 'password');
    expect(fs.readFileSync(password, 'utf8')).toBe(`${sandbox.secrets.password}\n`);
    expect(fs.statSync(password).mode & 0o777).toBe(0o600);
    // What it wrote works, and is found from everywhere.
    const checked = await new Program(['check'], { cwd: '/', env: { ...process.env, HOME: place.directory } }).ended;
    expect(checked).toMatchObject({ code: 0 });
    expect(fs.readdirSync(place.directory).sort()).toEqual(['.config', 'cluster']);
  });
});
