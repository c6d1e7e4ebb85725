/** The files of the installed package, and where in its sources an error happened. */
import fs from 'node:fs';
import { createRequire, SourceMap } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * The absolute path of `name`, which is relative to the directory of package.json; throws if there is no such file. Not
 * relative to the source that asks: the build puts many of them into one file (`imports` of package.json finds it).
 */
export function packageFile(name: string): string {
  return createRequire(import.meta.url).resolve(`#package/${name}`);
}

const PLACE = /(file:[^\s()]+\.js):(\d+):(\d+)/g;

/** The stack of `error`; places in the built program are those of the sources, `src/daemon/daemon.ts:12:3`. */
export function sourceStack({ stack = '' }: Error): string {
  const built = pathToFileURL(path.join(path.dirname(packageFile('package.json')), 'dist/')).href;
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replaceAll(PLACE, (place, url: string, line: string, column: string) => {
    // The message of an error may contain another path: it is not used.
    if (!url.startsWith(built) || url.includes('..')) return place;
    if (!maps.has(url)) maps.set(url, mapOf(url));
    const found = maps.get(url)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (found === undefined || !('originalSource' in found)) return place;
    const { originalSource, originalLine, originalColumn } = found;
    return `${originalSource.replace(/^(?:\.\.\/)+/, '')}:${originalLine + 1}:${originalColumn + 1}`;
  });
}

/** Undefined if there is none that can be read. */
function mapOf(url: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(fs.readFileSync(`${fileURLToPath(url)}.map`, 'utf8')));
  } catch {
    return undefined;
  }
}
