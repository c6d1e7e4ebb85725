/** An error that must come, cases in a file of text and their bytes, and a log that nothing is written to. */
import fs from 'node:fs';
import { expect } from 'vitest';
import { JobtailError } from '../../src/errors.ts';

/** The error that `promise` must reject with; any other one is thrown. */
export async function failureOf(promise: Promise<unknown>): Promise<JobtailError> {
  const thrown: unknown = await promise.then(
    (value) => new Error(`expected a failure, got ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  if (thrown instanceof JobtailError) return thrown;
  throw thrown;
}

/** The same of what is not waited for. */
export function errorOf(work: () => unknown): JobtailError {
  try {
    work();
  } catch (thrown) {
    if (thrown instanceof JobtailError) return thrown;
    throw thrown;
  }
  throw new Error('expected a failure');
}

/**
 * Compares a file of cases with their results. A case is a line that begins with `>`; `--update=true` writes the indented
 * lines below it. Empty lines, and those that begin with `#`, stay.
 */
export async function expectCases(
  file: string,
  resultOf: (written: string) => readonly string[] | Promise<readonly string[]>,
): Promise<void> {
  let all = '';
  for (const line of fs.readFileSync(file, 'utf8').split('\n')) {
    if (/^#|^$/.test(line)) all += `${line}\n`;
    if (!line.startsWith('> ')) continue;
    const result = await resultOf(line.slice('> '.length));
    all += `${[line, ...result.map((each) => `  ${each}`)].join('\n')}\n`;
  }
  await expect(all.replace(/\n$/, '')).toMatchFileSnapshot(file);
}

/** The bytes of a written case: `%0D` is a byte, `x{70}` and `(x y){70}` are repeated. */
export function writtenBytes(written: string): Buffer {
  const repeated = (_: string, words: string, times: string) => words.repeat(Number(times));
  const text = written.replaceAll(/([^\s()])\{(\d+)\}/g, repeated).replaceAll(/\(([^()]*)\)\{(\d+)\}/g, repeated);
  const byte = (_: string, code: string) => String.fromCharCode(Number.parseInt(code, 16));
  const bytes = Buffer.from(text).toString('latin1');
  return Buffer.from(bytes.replaceAll(/%([0-9A-F]{2})/g, byte), 'latin1');
}

type Steps = Readonly<Record<string, (...of: never[]) => unknown>>;

/** <x*9> is nine times x. */
export const expanded = (written: string): string =>
  written.replaceAll(/<([^<>]+)\*(\d+)>/g, (_, text: string, times) => text.repeat(Number(times)));

/** Does a step of a case: WORD, and JSON values with commas between them. */
export function stepOf(step: string, work: Steps): unknown {
  const [, word = '', rest = ''] = /^(\w+) ?(.*)$/s.exec(step) ?? [];
  expect(Object.keys(work)).toContain(word);
  return work[word]?.(...(JSON.parse(`[${expanded(rest)}]`) as never[]));
}

const nothing = () => {};

/** A log that nothing is written to. */
export const SILENT = { debug: nothing, info: nothing, warn: nothing, error: nothing };
