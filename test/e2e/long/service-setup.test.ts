/** `agent init`: from nothing to a configuration that works. */
import fs from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { Place } from '../../support/e2e-place.ts';
import { Program } from '../../support/e2e-program.ts';
import { needs } from '../../support/needs.ts';
import { Terminal } from '../../support/service-terminal.ts';

it('agent init asks on a terminal, and never shows the password', needs('script'), async (context) => {
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
