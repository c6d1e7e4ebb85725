/** Where an error happened, for whoever reports it: the build puts many sources into one file, and a map beside it. */
import fs from 'node:fs';
import { SourceMap } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { packageFile } from './package-file.ts';

const PLACE = /(file:[^\s()]+\.js):(\d+):(\d+)/g;

/** The stack of `error`; places in the built program are those of the sources, `src/daemon/daemon.ts:12:3`. */
export function sourceStack({ stack = '' }: Error): string {
  const built = pathToFileURL(path.join(path.dirname(packageFile('package.json')), 'dist/')).href;
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replaceAll(PLACE, (place, url: string, line: string, column: string) => {
    // What the message of an error says leads to no other file.
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
