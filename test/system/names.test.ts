import { expect, it } from 'vitest';
import { lookupByProgram } from '../../src/system/names.ts';
import { isInstalled } from '../../src/system/program.ts';
import { needsThat } from '../support/needs.ts';

const lookup = (name: string, options: object, signal = new AbortController().signal) =>
  new Promise((resolve) => {
    lookupByProgram(signal)(name, options, (error, ...found) => resolve(error?.code ?? found));
  });

it(
  'a name is looked up by the resolver of the system, outside of this process',
  needsThat(isInstalled('getent'), 'getent'),
  async () => {
    expect(await lookup('localhost', { all: true })).toEqual([
      expect.arrayContaining([{ address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/), family: expect.any(Number) }]),
    ]);
    expect(await lookup('127.0.0.1', { family: 4 })).toEqual(['127.0.0.1', 4]);
    expect(await lookup('127.0.0.1', { family: 6, all: true })).toBe('ENOTFOUND');
    expect(await lookup('::1', { family: 4, all: true })).toBe('ENOTFOUND');
    expect(await lookup('no-such-name.invalid', { all: true })).toBe('ENOTFOUND');
    expect(await lookup('localhost', {}, AbortSignal.abort())).toBe('EAI_AGAIN');
  },
);
