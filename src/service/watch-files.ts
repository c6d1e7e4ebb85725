/** Calls back soon after one of some files was written, replaced or made. */
import path from 'node:path';
import { watch } from 'chokidar';

export interface WatchFilesOptions {
  /** Absolute paths; a file need not be there yet, its directory must be. */
  readonly files: readonly string[];
  /** Look at the files again and again: network file systems do not tell of changes made elsewhere. */
  readonly polling: boolean;
  readonly onChange: (file: string) => void;
}

const POLLING_MS = 500;

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
  // A watch that breaks costs only speed: what it would have told is found at the next look.
  watcher.on('error', () => {});
  await new Promise<void>((resolve) => watcher.once('ready', resolve));
  return () => watcher.close();
}
