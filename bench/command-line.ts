/** The command lines of the benchmark and of the soak. What is wrong with one is reported in a line, with exit code 2. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { type ParseArgsConfig, parseArgs } from 'node:util';
import { EXIT, JobtailError } from '../src/errors.ts';

/** What the options are set to. @throws JobtailError usage */
export function valuesOf<const Options extends NonNullable<ParseArgsConfig['options']>>(
  options: Options,
  args = process.argv.slice(2),
) {
  try {
    return parseArgs({ options, args }).values;
  } catch (error) {
    // Only the first sentence: the others are about how to write it all the same.
    const [said] = (error instanceof Error ? error.message : String(error)).split('. ');
    const known = Object.keys(options).map((name) => `--${name}`);
    throw new JobtailError('usage', `${said}: the options are ${known.join(', ')}`);
  }
}

/** A number above 0. @throws JobtailError usage */
export function numberOf(option: string, text: string): number {
  const number = Number(text);
  if (number > 0 && Number.isFinite(number)) return number;
  throw new JobtailError('usage', `${option} takes a number above 0, found "${text}"`);
}

/** A whole number above 0. @throws JobtailError usage */
export function countOf(option: string, text: string): number {
  const number = numberOf(option, text);
  if (Number.isInteger(number)) return number;
  throw new JobtailError('usage', `${option} takes a whole number, found "${text}"`);
}

export async function endInOneLine(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (!(error instanceof JobtailError) || error.code !== 'usage') throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = EXIT.usage;
  }
}

/** A fresh directory on a disk: /tmp is in memory on many machines, and the files are large. TMPDIR overrules that. */
export function temporaryDirectory(prefix: string): string {
  const parent = process.env['TMPDIR'] || (fs.existsSync('/var/tmp') ? '/var/tmp' : os.tmpdir());
  return fs.mkdtempSync(path.join(parent, prefix));
}
