/** The files of the installed package. */
import fs from 'node:fs';
import path from 'node:path';

/** The path of `name` below the directory of package.json; throws if it is missing. The build moves sources. */
export function packageFile(name: string): string {
  let directory = import.meta.dirname;
  while (!fs.existsSync(path.join(directory, 'package.json')) && directory !== path.dirname(directory))
    directory = path.dirname(directory);
  const file = path.join(directory, name);
  fs.accessSync(file);
  return file;
}

export function versionOfProgram(): string {
  return (JSON.parse(fs.readFileSync(packageFile('package.json'), 'utf8')) as { version: string }).version;
}
