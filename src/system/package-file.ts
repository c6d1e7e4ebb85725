/** The files of the installed package. */
import { createRequire } from 'node:module';

/**
 * The absolute path of `name`, which is relative to the directory of package.json; throws if there is no such file. Not
 * relative to the source that asks: the build puts many of them into one file (`imports` of package.json finds it).
 */
export function packageFile(name: string): string {
  return createRequire(import.meta.url).resolve(`#package/${name}`);
}
