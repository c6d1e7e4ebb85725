/** The files of the installed package. */
import fs from 'node:fs';
import path from 'node:path';

/**
 * The absolute path of `name`, which is relative to the directory of package.json; throws if there is no such file. Not
 * relative to the source that asks: the build puts many of them into one file.
 */
export function packageFile(name: string): string {
  let directory = import.meta.dirname;
  while (!fs.existsSync(path.join(directory, 'package.json'))) directory = path.dirname(directory);
  const file = path.join(directory, name);
  fs.accessSync(file);
  return file;
}

export function versionOfProgram(): string {
  return (JSON.parse(fs.readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version;
}
