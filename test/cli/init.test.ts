/** What `agent init` takes from a service, and what it writes into the configuration. */
import fs from 'node:fs';
import type http from 'node:http';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import fc from 'fast-check';
import { expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { check } from '../../src/cli/commands/check.ts';
import { init } from '../../src/cli/commands/init.ts';
import { answersOf, configText, type InitFlags } from '../../src/cli/init/answers.ts';
import { putFile } from '../../src/cli/put-file.ts';
import { readYaml } from '../../src/config/yaml.ts';
import { EXIT, type JobtailError } from '../../src/errors.ts';
import { SmallDisk } from '../support/e2e-mount.ts';
import { until } from '../support/e2e-until.ts';
import { expectCases } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { closedAtEnd, startHttpServer } from '../support/wire-server.ts';

vi.mock(import('../../src/cli/commands/check.ts'), () => ({ check: vi.fn() }));

const UNSTOPPED = new AbortController().signal;

/** The origin of a server that answers so. */
async function originOf(answer: http.RequestListener): Promise<string> {
  return `http://127.0.0.1:${closedAtEnd(await startHttpServer(answer)).port}`;
}

const wsdl = (operation: string, namespace = 'urn:x') =>
  `<wsdl:definitions targetNamespace="${namespace}"><operation name="${operation}"/>`;
const [FILES, JOBS] = ['DownloadPartsOfJobFilesFromCluster', 'ListJobsForCurrentUser'];
const NO_JSON = `{"status":400,"errors":{"$":["'not JSON' is an invalid JSON literal."]}}`;
/** Responses of releases, and of what stands before them. */
const ANSWERS: Readonly<Record<string, readonly [status: number, text: string]>> = {
  files: [200, wsdl(FILES)],
  jobs: [200, wsdl(JOBS)],
  'jobs-of-another': [200, wsdl(JOBS, 'urn:y')],
  'no-json': [400, NO_JSON],
  400: [400, 'Welcome'],
  401: [401, ''],
  405: [405, ''],
  'V5.0.0': [404, 'Status Code: 404; Not Found'],
  'V6.3.2': [500, ''],
  form: [200, '<!DOCTYPE html>\n<html><form><input name="p" type="password"></form></html>'],
  welcome: [200, '<!-- site -->\n<HTML><h1>It works!</h1></HTML>'],
  300: [300, ''],
  301: [301, ''],
};

/** A case has the path of the address, or `nothing`; a namespace of a flag; and what methods and paths answer, or all others. */
it('each address is the service that answers there, or the reason why it is none', async () => {
  await expectCases(path.join(import.meta.dirname, 'init.txt'), async (written) => {
    const [at = '', ...words] = written.split(' ');
    const routes = new Map(words.map((word) => word.split(/=(.*)/) as [string, string]));
    const origin = await originOf(({ method, url }, response) => {
      const [name = '', namespace] = (routes.get(`${method}${url}`) ?? routes.get('*') ?? '').split(/:(.*)/);
      const [status, text] = ANSWERS[name] ?? [404, ''];
      const location = status < 400 && status >= 300 ? { location: `https://final.example.org${url}` } : {};
      response
        .writeHead(status, location)
        .end(namespace === undefined ? text : wsdl(FILES, JSON.parse(`"${namespace}"`)));
    });
    const url = at === 'nothing' ? `http://127.0.0.1:${await freePort()}/` : `${origin}${at}`;
    const flags = {
      url,
      method: 'session-code',
      secretFile: '/x',
      check: true,
      namespace: routes.get('namespace'),
    } as const;
    const answers = answersOf('c.yaml', flags as InitFlags, UNSTOPPED);
    const outcome = await answers.then(
      ({ sections }) => JSON.stringify(sections['service']),
      ({ code, message, hint }: JobtailError) => `${code}: ${message} (${hint})`,
    );
    return [outcome.replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')];
  });
});

it('the configuration that is written holds the answers and nothing else, whatever they are', () => {
  const text = fc.string({
    unit: fc.oneof(
      fc.constantFrom(...'"\'\\\n#{\u001b\u0085\u009b\u2028\u202e\uFEFF', ': ', '$&', '$1', '- '),
      fc.string({ unit: 'grapheme', maxLength: 1 }),
    ),
  });

  const key = fc.stringMatching(/^[a-z][A-Za-z]{0,9}$/).filter((name) => !/^(?:null|true|false)$/.test(name));
  const sections = fc.dictionary(key, fc.dictionary(key, fc.option(text), { minKeys: 1 }), { minKeys: 1 });
  fc.assert(
    fc.property(sections, (given) => {
      const written = configText(given);
      expect(written.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
      const { value, problems } = readYaml(written);
      expect(problems).toEqual([]);
      const answered = Object.entries(given).map(([name, keys]) => {
        const known = Object.entries(keys).filter(([, one]) => one !== null);
        return [name, known.length === 0 ? null : Object.fromEntries(known)];
      });
      expect(value).toEqual(Object.fromEntries(answered));
    }),
  );
});

it('an address that is not asked asks for the protocol and not for a namespace', async () => {
  const flags = { url: 'https://h.example.org/', secretFile: '/x', method: 'session-code', check: false } as const;
  const asked = { code: 'usage', message: expect.stringMatching(/^--protocol is/) };
  await expect(answersOf('c.yaml', flags, UNSTOPPED)).rejects.toMatchObject(asked);
  const { sections } = await answersOf('c.yaml', { ...flags, namespace: 'urn:x' }, UNSTOPPED);
  expect(sections['service']).toMatchObject({ protocol: 'soap' });
});

/** A terminal that shows questions; each line is typed once its question stands there. */
function terminal() {
  const { exitCode } = process;
  const input = Object.assign(new PassThrough(), { isTTY: true });
  let [printed, from] = ['', 0];
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(input as never);
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    printed += String(text);
    return true;
  });
  onTestFinished(() => {
    vi.restoreAllMocks();
    process.exitCode = exitCode;
  });
  const type = async (line: string, question = ': ') => {
    await until(question, () => printed.includes(question, from));
    from = printed.length;
    input.write(`${line}\n`);
  };
  return { type, printed: () => printed };
}

it.each([
  [
    'rest',
    'openid, external-token, password, session-code, api-key',
    ['', 'cloud-platform', 'api-key', 'alice'],
    { method: 'api-key' },
  ],
  [
    'soap',
    'openid, external-token, cloud-platform, password, session-code',
    ['soap', 'api-key', 'cloud-platform', 'urn:x', '', 'alice', 'x', '7'],
    { method: 'cloud-platform', username: 'alice', projectId: '7' },
  ],
] as const)('on a terminal, init offers the sign-ins of %s, and asks again for what does not fit', async (...row) => {
  const [protocol, methods, typed, auth] = row;
  const { type, printed } = terminal();
  const flags = { url: 'http://h.example.org', secretFile: '/x', check: false } as const;
  const answers = answersOf('c.yaml', flags, UNSTOPPED);
  for (const line of typed) await type(line);
  expect((await answers).sections).toMatchObject({ service: { protocol, baseUrl: flags.url }, auth });
  expect(printed()).toContain('Protocol of the middleware (rest, soap) [rest]: ');
  expect(printed()).toContain(`How to sign in (${methods}) [password]: `);
  expect(printed()).toContain('it is one of those named');
});

it('a secret that is entered again leaves the configuration of a unit readable for its user', async () => {
  const directory = temporaryDirectory();
  const file = path.join(directory, 'config.yaml');
  const { type, printed } = terminal();
  const signIns = vi.mocked(check).mockImplementationOnce(async () => {
    process.exitCode = EXIT.signIn;
  });
  const initialized = init({ protocol: 'rest', method: 'password', service: true, check: true, output: file });
  for (const [question, text] of [
    ['Address of the middleware', 'no address'],
    ['it starts with https://', 'http://127.0.0.1:9/heappe'],
    ['nothing answers at http://127.0.0.1:9/heappe: ', await originOf((_, response) => response.end('{}'))],
    ['User name: ', 'alic'],
    ['Password', 'wrong'],
    ['User name [alic]', 'alice'],
    ['The secret again', 'right'],
  ] as const)
    await type(text, question);
  await initialized;
  expect(signIns).toHaveBeenCalledTimes(2);
  // What is typed stands on the terminal, but no secret.
  expect(printed()).toMatch(/alic\r?\n/);
  expect(printed()).not.toMatch(/wrong|right/);
  expect(fs.readFileSync(path.join(directory, 'password'), 'utf8')).toBe('right\n');
  expect(readYaml(fs.readFileSync(file, 'utf8')).value).toMatchObject({ auth: { username: 'alice' } });
  expect(fs.statSync(file).mode & 0o777).toBe(0o644);
});

it('a file that a command writes stays as it was on a full disk, and the error asks for nothing that goes on by itself', (context) => {
  const { directory } = SmallDisk.mount(context, path.join(temporaryDirectory(), 'disk'), 16);
  fs.writeFileSync(path.join(directory, 'c.yaml'), 'before');
  const write = () => putFile(path.join(directory, 'c.yaml'), 'x'.repeat(100_000));
  expect(write).toThrow(
    expect.objectContaining({ code: 'disk-full', hint: 'free some space, and run the command again' }),
  );
  expect(fs.readdirSync(directory)).toEqual(['c.yaml']);
  expect(fs.readFileSync(path.join(directory, 'c.yaml'), 'utf8')).toBe('before');
});
