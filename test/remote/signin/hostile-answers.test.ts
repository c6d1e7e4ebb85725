/** Answers of a sign-in that are made to keep whoever reads them busy, of up to the size that is read. */
import { describe, expect, it } from 'vitest';
import { Secrets } from '../../../src/redact.ts';
import { readGrant } from '../../../src/remote/signin/operation.ts';
import { signInRefusal } from '../../../src/remote/signin/refusal.ts';
import { growthOf } from '../../support/cpu-cost.ts';

const repeated = (piece: string, size: number) => piece.repeat(Math.ceil(size / piece.length));
const many = (count: number, piece: (index: number) => string) => Array.from({ length: count }, (_, at) => piece(at));

const ANSWERS: Readonly<Record<string, (size: number) => string>> = {
  'lists inside of lists': (size) => '['.repeat(size / 2) + ']'.repeat(size / 2),
  'objects inside of objects': (size) => `${'{"a":'.repeat(size / 6)}1${'}'.repeat(size / 6)}`,
  'lists without end': (size) => '['.repeat(size),
  'a number': (size) => repeated('9', size),
  'a number with an exponent': (size) => `1e${repeated('9', size)}`,
  'a fraction': (size) => `0.${repeated('1', size)}`,
  'many numbers': (size) => `[${many(size / 5, () => '1e99').join()}]`,
  'a text': (size) => JSON.stringify(repeated('x', size)),
  'a text of escapes': (size) => `"${repeated('\\u0041', size)}"`,
  'a text without end': (size) => `"${repeated('\\"', size)}`,
  'many keys': (size) => `{${many(size / 12, (at) => `"k${at}":1`).join()}}`,
  'many keys of numbers': (size) => `{${many(size / 12, (at) => `"${at * 7919}":1`).join()}}`,
  'one key again and again': (size) => `{${many(size / 6, () => '"k":1').join()}}`,
  'many objects': (size) => `{${many(size / 14, (at) => `"k${at}":{"a":1}`).join()}}`,
  'many objects with almost a code': (size) => `{${many(size / 30, (at) => `"k${at}":{"session_code":""}`).join()}}`,
  'a key': (size) => `{"${repeated('k', size)}":1}`,
  'keys of signs': (size) => `{${many(size / 20, (at) => `"\\u001b_-_-_${at}":1`).join()}}`,
  __proto__: (size) => `{${many(size / 20, () => '"__proto__":{"a":1}').join()}}`,
  'a bare word': (size) => repeated('a', size),
  'bare words': (size) => repeated('a1 ', size),
  braces: (size) => repeated('{', size),
  'white space': (size) => repeated(' \n', size),
  'a page': (size) => `<html>${repeated('<p>', size)}`,
  'byte-order marks': (size) => repeated('\uFEFF', size / 3),
};

describe('of 8 KiB and of 64 KiB, in a time that grows no faster:', () => {
  it.each(Object.entries(ANSWERS))('%s', (_, answerOf) => {
    const secrets = new Secrets();
    secrets.add('sign-in', 'correct-horse-battery-staple');
    const read = (text: string) => () => {
      for (let times = 0; times < 3; times++) {
        for (const sessionCodeField of [null, 'a.b.c']) {
          const rules = { secret: 'x', secrets, isToken: true, sessionCodeField };
          try {
            readGrant({ text, contentType: 'application/json' }, rules);
          } catch (error) {
            expect(String(error).length).toBeLessThan(3000);
          }
        }
        const context = { url: 'http://127.0.0.1/', secrets, secretPlace: 'the password' };
        const error = signInRefusal({ status: 500, retryAfterMs: undefined }, text, context);
        expect(error.message.length).toBeLessThan(500);
      }
    };
    expect(growthOf(8 * 1024, (size) => read(answerOf(size)))).toMatchObject({ isLinear: true });
  });
});

it('names keys of an answer only if they are words', () => {
  const text = '{"Status":1,"x81f3-9a7b.c0":{"Reason_Code":2},"\\u001b[2J":3}';
  const rules = { secret: 'x', secrets: new Secrets(), isToken: false, sessionCodeField: null };
  expect(() => readGrant({ text, contentType: 'application/json' }, rules)).toThrow(
    'an object with "Status" (a number), a key of 13 characters (an object with "Reason_Code" (a number)), a key of 4 characters (a number)',
  );
});
