/** Calls back soon after one of some files was written, replaced or made. */
import fs from 'node:fs';
import path from 'node:path';
import { watch } from 'chokidar';

export interface WatchFilesOptions {
  /** Absolute paths; a file need not be there yet, its directory must be. */
  readonly files: readonly string[];
  /** Look at the files again and again: network file systems do not tell of changes made elsewhere. */
  readonly polling: boolean;
  /** May be called more than once for one change. */
  readonly onChange: (file: string) => void;
}

const POLLING_MS = 500;
/** A watch can miss an event or break; nothing is told later than this. */
const LOOK_MS = 1_000;

/** Starts watching; the returned function ends it. Resolves once a change can no longer be missed. */
export async function watchFiles({ files, polling, onChange }: WatchFilesOptions): Promise<() => Promise<void>> {
  const wanted = new Set(files);
  const directories = [...new Set(files.map((file) => path.dirname(file)))];
  // Directories, not files: an editor that replaces a file would leave a watch on the old one behind.
  const watcher = watch(directories, {
    depth: 0,
    ignoreInitial: true,
    ignored: (file) => !wanted.has(file) && !directories.includes(file),
    usePolling: polling,
    interval: POLLING_MS,
  });
  for (const event of ['add', 'change'] as const) watcher.on(event, (file) => wanted.has(file) && onChange(file));
  // A watch that breaks, or that the system refuses, costs only speed.
  watcher.on('error', () => {});
  await new Promise<void>((resolve) => watcher.once('ready', resolve));
  const stopLooking = lookAgain(files, onChange);
  return async () => {
    stopLooking();
    await watcher.close();
  };
}

/** Calls back for each file that changed since the last look. */
function lookAgain(files: readonly string[], onChange: (file: string) => void): () => void {
  const seen = new Map(files.map((file) => [file, stampOf(file)]));
  const look = () => {
    for (const file of files) {
      const stamp = stampOf(file);
      if (stamp === seen.get(file)) continue;
      seen.set(file, stamp);
      onChange(file);
    }
  };
  const timer = setInterval(look, LOOK_MS);
  return () => clearInterval(timer);
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
