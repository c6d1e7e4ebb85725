/** What functions of the configuration make of their arguments, which stand in functions.txt as JSON. */
import path from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { isQuickExpression, matchesInTime } from '../../src/config/auth-schema.ts';
import { type Config, changesOf, isPlainDatabase, plainConnections } from '../../src/config/config.ts';
import { expectCases } from '../support/errors.ts';
import { configDirectory, MINIMAL } from './files.ts';

const { load } = configDirectory();
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
};

it('each function returns what is written below its arguments', async () => {
  vi.stubEnv('PGSSLMODE', undefined);
  onTestFinished(() => void vi.unstubAllEnvs());
  await expectCases(path.join(import.meta.dirname, 'functions.txt'), async (written) => {
    const [, name = '', args] = /^(\w+) (.*)$/.exec(written) ?? [];
    const value = await FUNCTIONS[name]?.(...(JSON.parse(`[${args}]`) as never[]));
    return [value].flat().map(String);
  });
});
