/** Calls back soon after one of some files was written, replaced or made. */
import fs from 'node:fs';
import path from 'node:path';

export interface WatchFilesOptions {
  /** Absolute paths; a file need not be there yet, its directory must be. */
  readonly files: readonly string[];
  /** Look at the files more often: network file systems do not tell of changes made elsewhere. */
  readonly polling: boolean;
  /** May be called more than once for one change. */
  readonly onChange: (file: string) => void;
}

/** A watch can miss an event or break; nothing is told later than this. */
const LOOK_MS = 1_000;
const POLLING_MS = 500;

/** Starts watching: from now on no change is missed. The returned function ends it. */
export function watchFiles({ files, polling, onChange }: WatchFilesOptions): () => void {
  const seen = new Map<string, string>();
  const tell = (file: string) => {
    seen.set(file, stampOf(file));
    onChange(file);
  };
  // Directories, not files: an editor that replaces a file would leave a watch on the old one behind.
  const directories = new Set(files.map((file) => path.dirname(file)));
  const watchers = [...directories].map((directory) =>
    watchDirectory(directory, (name) => {
      for (const file of files) if (name === null || file === path.join(directory, name)) tell(file);
    }),
  );
  for (const file of files) seen.set(file, stampOf(file));
  const look = () => {
    for (const file of files) if (stampOf(file) !== seen.get(file)) tell(file);
  };
  const timer = setInterval(look, polling ? POLLING_MS : LOOK_MS);
  return () => {
    clearInterval(timer);
    for (const watcher of watchers) watcher?.close();
  };
}

/** Calls back with the name in the directory, or with null if it is not known. */
function watchDirectory(directory: string, onEvent: (name: string | null) => void): fs.FSWatcher | undefined {
  try {
    // A watch that breaks, or that the system refuses, costs only speed.
    return fs.watch(directory, (_, name) => onEvent(name)).on('error', () => {});
  } catch {
    return undefined;
  }
}

/** What is another when a file was written, replaced or made. */
function stampOf(file: string): string {
  try {
    const { size, mtimeNs } = fs.statSync(file, { bigint: true });
    return `${size} ${mtimeNs}`;
  } catch {
    return '';
  }
}
