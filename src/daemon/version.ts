/** The version of the program, from its package.json. */
import fs from 'node:fs';

export function versionOfProgram(): string {
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(fs.readFileSync(file, 'utf8')) as { version: string }).version;
}
