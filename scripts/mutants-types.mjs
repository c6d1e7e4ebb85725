// Which mistakes the compiler finds: each becomes a source of its own, beside the others by `rootDirs`, for one run of it.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

const root = path.dirname(import.meta.dirname);
/** A syntax error hides all errors of types. */
const SYNTAX = /^TS1\d{3}$/;

/** @returns those of the mistakes that compile; `textOf` gives the changed source of each */
export async function thatCompile(mutants, textOf) {
  const place = mkdtempSync(path.join(root, '.mutants-'));
  const copies = mutants.map((mutant, index) => ({
    mutant,
    file: mutant.file.replace(/(?=\.tsx?$)/, `.mutant${index}`),
  }));
  try {
    for (const { mutant, file } of copies) {
      const copy = path.join(place, 'as', file);
      mkdirSync(path.dirname(copy), { recursive: true });
      writeFileSync(copy, textOf(mutant));
    }
    const isPage = ({ file }) => file.startsWith('src/view/page/');
    const kept = await Promise.all([
      compiling(
        copies.filter((each) => !isPage(each)),
        place,
        'tsconfig.json',
      ),
      compiling(copies.filter(isPage), place, 'src/view/page/tsconfig.json'),
    ]);
    const all = new Set(kept.flat().map(({ mutant }) => mutant));
    return mutants.filter((mutant) => all.has(mutant));
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

async function compiling(copies, place, extended) {
  if (copies.length === 0) return [];
  const files = copies.map(({ file }) => `as/${file}`);
  const compilerOptions = { rootDirs: ['..', './as'] };
  const config = path.join(place, `${extended.replaceAll('/', '.')}`);
  writeFileSync(
    config,
    JSON.stringify({ extends: `../${extended}`, compilerOptions, files, include: [], exclude: [] }),
  );
  const tsc = path.join(root, 'node_modules', '.bin', 'tsc');
  const output = await new Promise((resolve) => {
    const options = { cwd: root, maxBuffer: 2 ** 28 };
    execFile(tsc, ['-p', config, '--pretty', 'false'], options, (_error, stdout) => resolve(stdout));
  });
  const errors = [...output.matchAll(/^.*?\/as\/(.*)\(\d+,\d+\): error (TS\d+)/gm)];
  const wrong = new Set(errors.map(([, file]) => file));
  const right = copies.filter(({ file }) => !wrong.has(file));
  return errors.some(([, , code]) => SYNTAX.test(code)) ? await compiling(right, place, extended) : right;
}
