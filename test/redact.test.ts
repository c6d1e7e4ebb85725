import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JobtailError } from '../src/errors.ts';
import { Secrets, safeText } from '../src/redact.ts';
import { anyCharacter, numRuns } from './support/property-runs.ts';

const everyUnit = (text: string, write: (unit: string) => string) => [...text].map(write).join('');
const hexOf = (text: string) => Buffer.from(text).toString('hex');
const pairsOf = (hex: string) => hex.match(/../g) ?? [];

/** Ways in which a text is quoted. */
const WAYS: Readonly<Record<string, (text: string) => string>> = {
  'as it is': (text) => text,
  'in capitals': (text) => everyUnit(text, (unit) => (unit.toUpperCase().length === 1 ? unit.toUpperCase() : unit)),
  'in small letters': (text) =>
    everyUnit(text, (unit) => (unit.toLowerCase().length === 1 ? unit.toLowerCase() : unit)),
  'in the other case': (text) =>
    text.replaceAll(/[a-z]/gi, (unit) => (unit === unit.toLowerCase() ? unit.toUpperCase() : unit.toLowerCase())),
  'in JSON': (text) => JSON.stringify(text),
  'in XML': (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
  'in an attribute': (text) =>
    text
      .replaceAll('&', '&amp;')
      .replaceAll('<', '&lt;')
      .replaceAll('>', '&gt;')
      .replaceAll('"', '&quot;')
      .replaceAll("'", '&#39;'),
  'in a URL': (text) => encodeURIComponent(text),
  'in percent signs': (text) =>
    pairsOf(hexOf(text))
      .map((pair) => `%${pair}`)
      .join(''),
  'in hexadecimal': hexOf,
  'in base64': (text) => Buffer.from(text).toString('base64'),
  'in base64url': (text) => Buffer.from(text).toString('base64url'),
  'in base64 behind a character': (text) => Buffer.from(`:${text}`).toString('base64'),
  'in base64 behind a name': (text) => Buffer.from(`alice:${text}`).toString('base64url'),
};

const letters = (characters: string, minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...characters), minLength, maxLength });
const SIGNS = ' !"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~';
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const secrets = fc.oneof(
  letters(`${LETTERS}0123456789`, 12, 64),
  letters(`${LETTERS}0123456789${SIGNS}`, 12, 64),
  letters(`${LETTERS}0123456789${SIGNS}žščřéíüß€漢字😀`, 12, 40),
  letters('0123456789abcdef-', 16, 64),
  letters(`${LETTERS}0123456789+/=`, 100, 600),
);

/** All runs of so many characters. */
function runsIn(text: string, length: number): string[] {
  return Array.from({ length: Math.max(0, text.length - length + 1) }, (_, at) => text.slice(at, at + length));
}

const plain = (text: string) => text.toLowerCase();

describe('nothing of a secret is shown', () => {
  it.each(Object.entries(WAYS))('%s: eight characters in a row of it, or of what was made of it', (_, write) => {
    const property = fc.property(
      secrets,
      fc.tuple(fc.double({ min: 0, max: 0.6, noNaN: true }), fc.double({ min: 0.4, max: 1, noNaN: true })),
      (secret, [from, part]) => {
        const characters = [...secret];
        const start = Math.floor(characters.length * from);
        const fragment = characters.slice(start, start + Math.ceil((characters.length - start) * part)).join('');
        const quoted = write(fragment);
        const known = new Secrets();
        known.add('session', secret);
        const shown = plain(known.safeText(`no: ${quoted.slice(0, 1500)} :yes`, 5000));
        const leaks = [...runsIn(secret, 8), ...runsIn(fragment, 8)]
          .map(plain)
          .filter((run) => shown.includes(run) && !/^[* .]*$/.test(run));
        expect(leaks, shown).toEqual([]);
        // What was made of it, and cut into pieces, shows no more than its ends.
        const isTelling = fragment.replaceAll(/[^a-z0-9]/gi, '').length >= 16;
        const kept = shown
          .replace(/^no: /, '')
          .replace(/ :yes$/, '')
          .replaceAll(/[^a-z0-9]/g, '').length;
        if (isTelling) expect((kept * fragment.length) / quoted.length, `${quoted} -> ${shown}`).toBeLessThan(8);
      },
    );
    fc.assert(property, numRuns(200));
  });

  it('nor of the sessions before', () => {
    const known = new Secrets();
    const codes = Array.from(
      { length: 8 },
      (_, at) => `${'abcdefgh'.charAt(at).repeat(3)}-session-${at}${at}${at}${at}`,
    );
    known.add('sign-in', 'the password of alice');
    for (const code of codes) known.add('session', code);
    for (const code of codes) expect(known.safeText(`was ${code}`)).toBe('was ***');
    known.add('session', codes[0] ?? '');
    known.add('session', 'another-session-code');
    expect(known.hide(`${codes[0]} `), 'one that is used again is not the oldest').toBe('*** ');
    expect(known.hide('the password of alice'), 'it is of another kind').toBe('***');
  });
});

describe('safeText', () => {
  it('is one short line of visible characters', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyCharacter, maxLength: 2000 }), (text) => {
        const shown = safeText(text, ['a secret of some length']);
        expect(shown).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
        expect([...shown].length).toBeLessThanOrEqual(203);
      }),
    );
  });

  it('takes milliseconds for whatever is quoted', () => {
    const known = new Secrets();
    for (let at = 0; at < 8; at++) {
      known.add('session', `${at}-session-of-some-length`);
      known.add('transfer-key', `${at}`.repeat(3000));
    }
    known.safeText('warm');
    for (const text of ['%41', '\\u0041', '&#65;', '%2541', 'a', '\\', '&', '-----BEGIN ', 'bearer ', 'eyJaaaaaaaa.']) {
      const before = process.cpuUsage();
      known.safeText(text.repeat(1_000_000 / text.length));
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1000, text).toBeLessThan(250);
    }
  });
});

it.each(['in XML', 'in an attribute'])('a secret with a sign in each of its words is hidden whole: %s', (way) => {
  const secret = `ab&cd<ef>gh"ij'kl&mn`;
  expect(safeText(`it is ${WAYS[way]?.(secret)}, it is`, [secret])).toBe('it is ***, it is');
});

describe('a message of the program', () => {
  it('keeps its own words, though pieces of a short password are in them', () => {
    const secrets = new Secrets();
    secrets.add('sign-in', 'secret');
    const error = new JobtailError('fault', 'the FirecREST cluster does not know the secret', {
      hint: 'read the secret',
    });
    expect(secrets.hideIn(error)).toBe(error);
    expect(secrets.safeText('wrong: secret')).toBe('wrong: ***');
  });

  it('keeps its own words, though they are in a long password', () => {
    const secrets = new Secrets();
    for (const secret of ['wrong-password', 'AuthenticateUser1', 'the password of alice'])
      secrets.add('sign-in', secret);
    const own = 'check the password in the file /home/a/.config/jobtail/password (AuthenticateUserPassword)';
    expect(secrets.hideInMessage(own)).toBe(own);
    const keys = 'passwordFile passwordCommand tokenFile tokenCommand sessionCodeFile external-token username';
    for (const word of `${keys} AuthenticateUserOpenId AuthenticateUserAndPassword`.split(' ')) {
      const one = new Secrets();
      one.add('sign-in', `${word}-7`);
      expect(one.hideInMessage(`set ${word}, not ${word}-7`)).toBe(`set ${word}, not ***`);
    }
    expect(secrets.hideInMessage('asked with wrong-password')).toBe('asked with ***');
    expect(secrets.hideInMessage('asked with wrong-pas')).toBe('asked with ***');
    expect(secrets.safeText('asked with wrong-password')).toBe('asked with ***');
  });

  it('holds no secret of eight characters or more', () => {
    const secrets = new Secrets();
    secrets.add('sign-in', 'hunter2hunter3');
    class AnotherError extends JobtailError {}
    const cause = Object.assign(new Error('EFBIG: hunter2hunter3'), { code: 'EFBIG', syscall: 'write' });
    const options = { hint: 'not hunter2hunter3', retryAfterMs: 7, inPlace: 'nothing', cause } as const;
    const error = secrets.hideIn(new AnotherError('fault', 'asked with hunter2hunter3', options));
    expect(error).toBeInstanceOf(AnotherError);
    expect({ ...error, message: error.message, cause: error.cause }).toEqual({
      ...{ name: 'JobtailError', code: 'fault', message: 'asked with ***', hint: 'not ***' },
      ...{ retryAfterMs: 7, inPlace: 'nothing', cause: { code: 'EFBIG', syscall: 'write' } },
    });
  });
});
