/** What `agent init` takes from a service, and what it writes into the configuration. */
import fs from 'node:fs';
import type http from 'node:http';
import path from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { freePort } from '../../simulator/free-port.ts';
import { jobsUrlBeside, namespaceOf } from '../../src/cli/check/description.ts';
import { check } from '../../src/cli/commands/check.ts';
import { init } from '../../src/cli/commands/init.ts';
import { answersOf, configText } from '../../src/cli/init/answers.ts';
import { serviceAt } from '../../src/cli/init/service.ts';
import { putFile } from '../../src/cli/put-file.ts';
import { readYaml } from '../../src/config/yaml.ts';
import { EXIT } from '../../src/errors.ts';
import { packageFile } from '../../src/system/package-file.ts';
import { SmallDisk } from '../support/e2e-mount.ts';
import { until } from '../support/e2e-until.ts';
import { failureOf } from '../support/errors.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';
import { closedAtEnd, startHttpServer } from '../support/wire-server.ts';

vi.mock(import('../../src/cli/commands/check.ts'), () => ({ check: vi.fn() }));

const UNSTOPPED = new AbortController().signal;

/** The origin of a server that answers so. */
async function originOf(answer: http.RequestListener): Promise<string> {
  return `http://127.0.0.1:${closedAtEnd(await startHttpServer(answer)).port}`;
}

it.each([
  ['http://middleware.example.org/', 'http://middleware.example.org/'],
  ['urn:x:y-1', 'urn:x:y-1'],
  ['http://a/\u001b[31m', undefined],
  ['http://a/\u009b2J', undefined],
  ['http://a/\u202eb', undefined],
  ['http://a/ b', undefined],
  ['http://a/\n  baseUrl: http://b/', undefined],
  ['', undefined],
])('the namespace %j of a service is suggested only if it can be one', async (written, suggested) => {
  const wsdl = `<wsdl:definitions targetNamespace="${written}">`;
  const origin = await originOf((_, response) => response.end(wsdl));
  expect(await namespaceOf(`${origin}/Ws`, UNSTOPPED)).toBe(suggested);
});

describe('the job service', () => {
  /** A server that describes what it has by the paths that it has. */
  async function beside(path: string, described: Readonly<Record<string, string>>): Promise<string | undefined> {
    const origin = await originOf(({ url = '' }, response) => {
      const text = described[url.replace('?wsdl', '')];
      response.writeHead(text === undefined ? 404 : 200).end(text);
    });
    const service = { fileTransferUrl: `${origin}${path}`, namespace: 'urn:x' };
    return (await jobsUrlBeside(service, UNSTOPPED))?.replace(origin, '');
  }
  const wsdl = '<wsdl:definitions targetNamespace="urn:x"><operation name="ListJobsForCurrentUser"/>';

  it.each([
    ['/FileTransferWs', '/JobManagementWs'],
    ['/a.b/FileTransferWs/', '/a.b/JobManagementWs/'],
    ['/FileTransferWs.asmx?v=1', '/JobManagementWs.asmx'],
    ['/FileTransferWs.svc/soap', '/JobManagementWs.svc/soap'],
    ['/ws/files', '/ws/JobManagementWs'],
    ['/ws/files.asmx', '/ws/JobManagementWs.asmx'],
  ])('is looked for beside %s', async (path, found) => {
    expect(await beside(path, { [found]: wsdl })).toBe(found);
  });

  it('is none that answers with something else, or is of another namespace', async () => {
    expect(await beside('/FileTransferWs', {})).toBeUndefined();
    expect(await beside('/FileTransferWs', { '/JobManagementWs': '<html>Welcome</html>' })).toBeUndefined();
    const another = wsdl.replace('urn:x', 'urn:y');
    expect(await beside('/FileTransferWs', { '/JobManagementWs': another })).toBeUndefined();
  });
});

describe('the protocol of an address', () => {
  const SIGN_IN = 'UserAndLimitationManagement/AuthenticateUserPassword';
  const wsdl = '<definitions targetNamespace="urn:x"><operation name="DownloadPartsOfJobFilesFromCluster"/>';
  const NO_JSON =
    '{"title":"One or more validation errors occurred.","status":400,"errors":{"$":["\'not JSON\' is an invalid JSON literal."]}}';
  /** Answers to other paths and verbs, of releases and of what stands before them. */
  const ELSEWHERE = [
    ['V6.3.2', 500, ''],
    ['V5.0.0', 404, 'Status Code: 404; Not Found'],
    ['a proxy with a page', 200, '<html>Welcome</html>'],
    ['a proxy that wants a sign-in', 401, ''],
    ['a proxy that refuses', 405, ''],
  ] as const;

  /** A server that answers each path and verb with a status and a text. */
  async function found(
    answer: (path: string, method: string) => readonly [number, string?],
    path = '',
  ): Promise<unknown> {
    const origin = await originOf(({ url = '', method = '' }, response) => {
      const [status, text] = answer(url, method);
      response.writeHead(status).end(text);
    });
    const service = await serviceAt(`${origin}${path}`, UNSTOPPED);
    return service && JSON.parse(JSON.stringify(service).replaceAll(origin, ''));
  }

  it('is SOAP where the file transfer describes itself', async () => {
    const soap = { protocol: 'soap', fileTransferUrl: '/ws/FileTransferWs', namespace: 'urn:x' };
    expect(await found((url) => (url === '/ws/FileTransferWs?wsdl' ? [200, wsdl] : [404]), '/ws/')).toEqual(soap);
    expect(await found((url) => (url === '/ws/FileTransferWs?wsdl' ? [200, wsdl.replace('Parts', '')] : [404]))).toBe(
      undefined,
    );
  });

  it.each([
    ['', '/heappe', { baseUrl: '', path: '/heappe' }],
    ['/heappe/', '/heappe', { baseUrl: '', path: '/heappe' }],
    ['/a/heappe', '/a/heappe', { baseUrl: '/a', path: '/heappe' }],
    ['/a', '/a', { baseUrl: '', path: '/a' }],
    ['/swagger/index.html', '/heappe', { baseUrl: '', path: '/heappe' }],
  ])('at %j is REST where the framework of the sign-in at %s refuses what is no JSON', async (given, path, service) => {
    for (const [, status, text] of ELSEWHERE) {
      const answer = (url: string, method: string) =>
        url === `${path}/${SIGN_IN}` && method === 'POST' ? ([400, NO_JSON] as const) : ([status, text] as const);
      expect(await found(answer, given)).toEqual({ protocol: 'rest', ...service });
    }
  });

  it.each(ELSEWHERE)('is none where every address gets the same answer: %s', async (_who, status, text) => {
    expect(await found(() => [status, text])).toBeUndefined();
    expect(await found(() => [400, 'Welcome'])).toBeUndefined();
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

const page = (text: string) => (_: unknown, response: http.ServerResponse) => response.end(text);
const moved = (path: string, status: number) => (request: http.IncomingMessage, response: http.ServerResponse) => {
  const isMoved = request.url?.replace('?wsdl', '') === path;
  response.writeHead(isMoved ? status : 404, { location: `https://final.example.org${request.url}` }).end();
};
const FORM = '<!DOCTYPE html>\n<html><form><input name="p" type="password"></form></html>';
const WELCOME = '<!-- site -->\n<HTML><h1>It works!</h1></HTML>';

it.each<[string, http.RequestListener | undefined, code: string, message: string, hint: string]>([
  ['nothing', undefined, 'unavailable', 'nothing answers at URL: 127.0.0.1', '--no-check'],
  ['a form', page(FORM), 'unexpected-answer', 'URL is a page for signing in, and no service of a m', 'gets past it'],
  ['a page', page(WELCOME), 'unexpected-answer', 'URL is a page for browsers, and no service of a m', 'check the ad'],
  ['no such page', moved('', 0), 'unexpected-answer', 'no service of a middleware is found at URL', 'add --protocol'],
  ['another address', moved('/', 301), 'redirected', 'URL redirects to https://final.example.org/', 'example.org/'],
  ['several addresses', moved('/', 300), 'redirected', 'URL redirects to https://final.example.org/', 'example.org/'],
  [
    'one below',
    moved('/FileTransferWs', 301),
    'redirected',
    'URL redirects to https://final.example.org',
    'example.org',
  ],
])('%s in place of a service is named, unless a flag says what is there', async (...row) => {
  const [, answer, code, message, hint] = row;
  const url = `${answer === undefined ? `http://127.0.0.1:${await freePort()}` : await originOf(answer)}/`;
  const flags = { url, method: 'session-code', secretFile: '/x', check: true } as const;
  const error = await failureOf(answersOf('c.yaml', flags, UNSTOPPED));
  expect({ ...error, message: error.message.replace(url, 'URL') }).toMatchObject({
    code,
    message: expect.stringContaining(message),
    hint: expect.stringContaining(hint),
  });
  if (code !== 'unexpected-answer') return;
  const { sections } = await answersOf('c.yaml', { ...flags, namespace: 'urn:x' }, UNSTOPPED);
  expect(sections['service']).toMatchObject({ protocol: 'soap', fileTransferUrl: url });
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

it('init writes private files, keeps former ones aside, and leaves no part of new ones where it fails', async () => {
  const directory = temporaryDirectory();
  const [file, secret] = ['c.yaml', 'password'].map((name) => path.join(directory, name)) as [string, string];
  const stdin = vi.spyOn(process, 'stdin', 'get');
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  onTestFinished(() => void vi.restoreAllMocks());
  const initAs = async (username: string, force: boolean, output = 'c.yaml', baseUrl = 'http://127.0.0.1:9') => {
    stdin.mockReturnValue(Readable.from([`of ${username}\n`]) as never);
    const flags = { url: 'http://127.0.0.1:9/heappe', baseUrl, protocol: 'rest', method: 'password' } as const;
    await init({ ...flags, username, force, secretStdin: true, check: false, output: path.join(directory, output) });
  };
  const read = (name: string) => fs.readFileSync(path.join(directory, name), 'utf8');
  await initAs('alice', false);
  expect([file, secret].map((each) => fs.statSync(each).mode & 0o777)).toEqual([0o600, 0o600]);
  const before = read('c.yaml');
  expect(before).toContain('`agent help configuration` lists all keys');
  expect(readYaml(before).value).toMatchObject({ mirror: { directory: './mirror' }, state: { directory: './state' } });
  const soap = {
    url: 'https://h.example.org/FileTransferWs',
    protocol: 'soap',
    method: 'password',
    check: false,
  } as const;
  await expect(answersOf(file, soap, UNSTOPPED)).rejects.toThrow('--namespace is missing');
  await expect(initAs('bob', false)).rejects.toMatchObject({ code: 'usage', message: `${file} is there already` });
  // Beside another configuration: --force would replace its password.
  const hint = expect.not.stringContaining('--force');
  await expect(initAs('bob', false, 'd.yaml')).rejects.toMatchObject({ message: `${secret} is there already`, hint });
  expect([read('c.yaml'), read('password')]).toEqual([before, 'of alice\n']);
  await initAs('bob', true);
  const bobs = read('c.yaml');
  expect(bobs).toContain('username: "bob"');
  expect(['password', 'c.yaml.bak', 'password.bak'].map(read)).toEqual(['of bob\n', before, 'of alice\n']);
  fs.writeFileSync(`${secret}.${process.pid}.new`, '');
  await expect(initAs('carol', true)).rejects.toThrow(`cannot write ${secret}`);
  // The agent can go on with what was there, also if the answers are refused.
  await expect(initAs('carol', true, 'c.yaml', 'nonsense')).rejects.toThrow('service.baseUrl: expected an address');
  expect(fs.readdirSync(directory).sort()).toEqual(['c.yaml', 'password']);
  expect([read('c.yaml'), read('password')]).toEqual([bobs, 'of bob\n']);
});

it('init --service sets the directories of the unit, or of its instance, and the one credential that units load', async () => {
  const directory = temporaryDirectory();
  const file = path.join(directory, 'config.yaml');
  const stdin = vi.spyOn(process, 'stdin', 'get');
  const printed = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  onTestFinished(() => void vi.restoreAllMocks());
  const flags = { url: 'https://mw.example.org/FileTransferWs', namespace: 'urn:x', baseUrl: 'https://mw.example.org' };
  const more = { protocol: 'soap', username: 'alice', force: true, secretStdin: true, check: false } as const;
  for (const [service, method, key, unit, suffix] of [
    [true, 'password', 'passwordCredential', 'agent', ''],
    ['alice', 'openid', 'tokenCredential', 'agent@alice', '-alice'],
  ] as const) {
    stdin.mockReturnValue(Readable.from(['the secret\n']) as never);
    await init({ ...flags, ...more, service, method, output: file });
    expect(readYaml(fs.readFileSync(file, 'utf8')).value).toMatchObject({
      auth: { [key]: 'password' },
      mirror: { directory: `/srv/agent${suffix}` },
      state: { directory: `/var/lib/agent${suffix}/state` },
    });
    expect(String(printed.mock.lastCall)).toContain(`systemctl enable --now ${unit}, then`);
  }
  const secret = () => fs.readFileSync(path.join(directory, 'password'), 'utf8');
  expect(secret()).toBe('the secret\n');
  // That file is for root alone: the unit cannot read it. The second time, it is the one of the unit.
  const secretFile = path.join(directory, 'of-root');
  fs.writeFileSync(secretFile, 'another secret\n', { mode: 0o600 });
  for (const named of [secretFile, path.join(directory, 'password')]) {
    const of = { ...more, secretStdin: false, secretFile: named, method: 'password' } as const;
    await init({ ...flags, ...of, service: true, output: file });
    const { value } = readYaml(fs.readFileSync(file, 'utf8'));
    expect([value, secret()]).toMatchObject([{ auth: { passwordCredential: 'password' } }, 'another secret\n']);
  }
  for (const unit of ['agent.service', 'agent@.service'])
    expect(fs.readFileSync(packageFile(`systemd/${unit}`), 'utf8')).toMatch(/^LoadCredential=password:/m);
});

it('a secret that is entered again leaves the configuration of a unit readable for its user', async () => {
  const directory = temporaryDirectory();
  const file = path.join(directory, 'config.yaml');
  const { type } = terminal();
  const signIns = vi.mocked(check).mockImplementationOnce(async () => {
    process.exitCode = EXIT.signIn;
  });
  const flags = { protocol: 'rest', method: 'password', service: true, check: true, output: file } as const;
  const initialized = init({ ...flags, url: await originOf((_, response) => response.end('{}')) });
  for (const [question, text] of [
    ['User name: ', 'alic'],
    ['Password', 'wrong'],
    ['User name [alic]', 'alice'],
    ['The secret again', 'right'],
  ] as const)
    await type(text, question);
  await initialized;
  expect(signIns).toHaveBeenCalledTimes(2);
  expect(fs.readFileSync(path.join(directory, 'password'), 'utf8')).toBe('right\n');
  expect(readYaml(fs.readFileSync(file, 'utf8')).value).toMatchObject({ auth: { username: 'alice' } });
  expect(fs.statSync(file).mode & 0o777).toBe(0o644);
});

describe('a file that a command writes', () => {
  it('stays as it was where it cannot be written, and the error names it', () => {
    const directory = temporaryDirectory();
    const file = path.join(directory, 'taken');
    fs.mkdirSync(file);
    fs.writeFileSync(path.join(file, 'kept'), 'kept');
    expect(() => putFile(file, 'new')).toThrow(`cannot write ${file}: `);
    expect(fs.readdirSync(directory)).toEqual(['taken']);
    const missing = path.join(directory, 'missing', 'c.yaml');
    expect(() => putFile(missing, 'new')).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('run the command again') }),
    );
  });

  it('stays as it was on a full disk, and the error asks for nothing that goes on by itself', (context) => {
    const { directory } = SmallDisk.mount(context, path.join(temporaryDirectory(), 'disk'), 16);
    fs.writeFileSync(path.join(directory, 'c.yaml'), 'before');
    const write = () => putFile(path.join(directory, 'c.yaml'), 'x'.repeat(100_000));
    expect(write).toThrow(
      expect.objectContaining({ code: 'disk-full', hint: 'free some space, and run the command again' }),
    );
    expect(fs.readdirSync(directory)).toEqual(['c.yaml']);
    expect(fs.readFileSync(path.join(directory, 'c.yaml'), 'utf8')).toBe('before');
  });
});
