/** What functions of the configuration make of files and of their arguments, which stand in functions.txt as JSON. */
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it, onTestFinished, vi } from 'vitest';
import { isQuickExpression, matchesInTime } from '../../src/config/auth-schema.ts';
import { type Config, changesOf, isPlainDatabase, plainConnections } from '../../src/config/config.ts';
import { type ConfigSearch, findConfig, loadConfig, loadTls } from '../../src/config/load.ts';
import { asJobtailError } from '../../src/errors.ts';
import { expectCases } from '../support/errors.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { path, load } = configDirectory();
const TEXTS: Readonly<Record<string, string>> = {
  WORDS: 'a session of words '.repeat(108),
  // Made for the pattern (a+)+$.
  LONG: `${'a'.repeat(2000)}!`,
};
const BASES: Readonly<Record<string, string>> = {
  soap: MINIMAL,
  rest: MINIMAL.replace(/protocol: soap[\s\S]* {2}baseUrl/, 'protocol: rest\n  baseUrl'),
  fleet: `${MINIMAL}fleet: {urlFile: db, name: anna}\n`,
};
const IN_JOB = ['mirror/501/results/503', 'mirror/501/live/502', '501/results'];
const BESIDE = ['own', '501', 'results/501', '501/result/x', 'a501/results', '501/logs'];
const MIB = 1024 * 1024;
const ALIASES = Array.from({ length: 9 }, (_, n) => `a${n + 1}: &a${n + 1} [${Array(9).fill(`*a${n}`).join(', ')}]\n`);
const FILES: Readonly<Record<string, string | Buffer>> = {
  ...Object.fromEntries([...IN_JOB, ...BESIDE, 'xdg/jobtail', 'home/.config/jobtail'].map(configIn)),
  ...{ 'system.yaml': '', 'here/config.yaml/in-it': '', 'odd/jobtail/config.yaml/in-it': '' },
  ...{ 'latin1.yaml': Buffer.from('auth: {username: J\xe1n}', 'latin1'), 'with-mark.yaml': windows(MINIMAL) },
  ...{ 'utf16.yaml': Buffer.from('\uFEFFauth: {}', 'utf16le'), 'others-write.yaml': MINIMAL },
  ...{ 'largest.yaml': `${MINIMAL}#`.padEnd(MIB, 'x'), 'larger.yaml': `${MINIMAL}#`.padEnd(MIB + 1, 'x') },
  ...{ 'aliases.yaml': `a0: &a0 [x]\n${ALIASES.join('')}`, garbage: 'no PEM' },
};

function configIn(directory: string) {
  return [`${directory}/config.yaml`, MINIMAL] as const;
}

/** As an editor of Windows saves it. */
function windows(text: string): string {
  return `\uFEFF${text.replaceAll('\n', '\r\n')}`;
}

async function makeFiles(): Promise<void> {
  for (const [name, content] of Object.entries(FILES)) {
    fs.mkdirSync(dirname(path(name)), { recursive: true });
    fs.writeFileSync(path(name), content);
  }
  fs.chmodSync(path('others-write.yaml'), 0o646);
  fs.symlinkSync(path('mirror/501/results/503/config.yaml'), path('link-to-result.yaml'));
  fs.symlinkSync(path('own/config.yaml'), path('mirror/501/results/link.yaml'));
  const openssl = (words: string) => promisify(execFile)('openssl', words.split(' '), { cwd: path('') });
  const curve = '-newkey ec -pkeyopt ec_paramgen_curve:P-256';
  for (const name of ['one', 'two'])
    await openssl(`req -x509 -subj /CN=${name} -days 2 -nodes ${curve} -keyout ${name}.key -out ${name}.pem`);
  await openssl('x509 -in one.pem -outform der -out one.der');
}

/** A base, with texts replaced and lines added. */
function configOf([base = '', ...changes]: readonly string[]): Promise<Config> {
  const text = changes.reduce((written, change) => {
    const [before, after] = change.split(' -> ');
    if (after === undefined) return `${written}${change}\n`;
    expect(written).toContain(before);
    return written.replace(before ?? '', after);
  }, BASES[base] ?? '');
  return load(text);
}

const FUNCTIONS: Readonly<Record<string, (...args: never[]) => unknown>> = {
  isQuickExpression,
  matchesInTime: (pattern: string, text: string) => matchesInTime(pattern, TEXTS[text] ?? text),
  isPlainDatabase,
  plainConnections: (fileTransferUrl: string, baseUrl: string, ...urls: string[]) =>
    plainConnections({
      service: { protocol: 'soap', fileTransferUrl, jobsUrl: null, baseUrl, proxy: 'http://127.0.0.1:3128' },
      notify: urls.map((url) => ({ url })),
    } as unknown as Config).map(({ scope, text }) => `${scope}: ${text}`),
  changesOf: async (before: string[], after: string[]) => {
    const { sections, restart } = changesOf(await configOf(before), await configOf(after));
    return [`sections: ${sections.join(' ') || 'none'}`, ...restart.map((key) => `a restart for ${key}`)];
  },
  findConfig: (search: Partial<ConfigSearch>) =>
    findConfig({ explicit: undefined, env: {}, cwd: path(''), systemFile: path('system.yaml'), ...search }),
  loadConfig: async (name: string, user = 1_000) => {
    const own = vi.spyOn(process, 'geteuid').mockReturnValue(user);
    const { service } = await loadConfig(path(name)).finally(() => own.mockRestore());
    return `${service.protocol} ${service.baseUrl}`;
  },
  loadTls: async (tls: string) => {
    const found = await loadTls(await load(MINIMAL.replace('auth:', `  tls: ${tls}\nauth:`)));
    const nameOf = (pem: Buffer) =>
      fs.readdirSync(path('')).find((name) => /pem|key/.test(name) && pem.equals(fs.readFileSync(path(name))));
    return Object.entries(found).map(([key, pem]) => `${key} is ${nameOf(pem)}`);
  },
};

it('each function returns what is written below its arguments', async () => {
  vi.stubEnv('PGSSLMODE', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  await makeFiles();
  await expectCases(join(import.meta.dirname, 'functions.txt'), async (written) => {
    const [, name = '', args = ''] = /^(\w+) (.*)$/.exec(written) ?? [];
    const call = async () =>
      await FUNCTIONS[name]?.(...(JSON.parse(`[${args.replaceAll('DIR', path('.'))}]`) as never[]));
    const value = await call().catch((thrown: unknown) => {
      const { code, message, hint } = asJobtailError(thrown);
      return [...message.split('\n').map((line) => `${code}: ${line}`), `(${hint})`];
    });
    return [value].flat().map((each) =>
      String(each)
        .replaceAll(path('.'), 'DIR')
        .replaceAll(/DIR\/\d+\.yaml/g, 'FILE'),
    );
  });
});

it('brackets without end are refused, wherever the stack ends', async () => {
  const refused = { code: 'config', message: expect.stringContaining('RESOURCE_EXHAUSTION') };
  await expect(load('['.repeat(10_000))).rejects.toMatchObject(refused);
});
