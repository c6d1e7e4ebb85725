/** With the built program: the places in its files, and those in the sources. */
import fs from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { sourceStack } from '../../src/system/package-file.ts';
import { temporaryDirectory } from '../support/temp-directory.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CODE = 'async function runProgram(';

/** The line, counted from one, of the only place where `CODE` is. */
function lineIn(file: string): number | undefined {
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  const index = lines.findIndex((line) => line.includes(CODE));
  return index < 0 ? undefined : index + 1;
}

function errorAt(file: string, line: number): Error {
  const error = new Error('broken');
  error.stack = `Error: broken\n    at async runProgram (${pathToFileURL(file)}:${line}:10)\n    at node:fs:1:2`;
  return error;
}

it('says the file and the line of the source', () => {
  const chunks = fs.readdirSync(`${ROOT}dist/chunks`).filter((name) => name.endsWith('.js'));
  const files = chunks.map((name) => `${ROOT}dist/chunks/${name}`);
  const [built = ''] = files.filter((file) => lineIn(file) !== undefined);
  const source = lineIn(`${ROOT}src/system/program.ts`);
  expect(source).toBeGreaterThan(0);
  const stack = sourceStack(errorAt(built, lineIn(built) ?? 0));
  expect(stack).toMatch(
    new RegExp(`at async runProgram \\(src/system/program\\.ts:${source}:\\d+\\)\n    at node:fs:1:2$`),
  );
});

it('leaves a place as it is that is none of the built program', () => {
  const file = `${temporaryDirectory()}/elsewhere.js`;
  fs.writeFileSync(`${file}.map`, '{"version":3,"sources":["secret"],"names":[],"mappings":"AAAA"}');
  const error = errorAt(file, 1);
  expect(sourceStack(error)).toBe(error.stack);
});
