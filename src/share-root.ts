/**
 * Directories that may be a root of shares (`results.shareRoots`): the server names files below a root, so it must not
 * contain private files. Paths are absolute and normalized; both a path as written, and its target after following
 * links, are checked.
 */

/** Directories of the machine, not of a cluster. */
const OF_THE_MACHINE = ['/boot', '/dev', '/etc', '/proc', '/sys'];

/** Whether `file` is `directory`, or lies in it. */
export function isWithin(directory: string, file: string): boolean {
  return file === directory || file.startsWith(directory.endsWith('/') ? directory : `${directory}/`);
}

/** Why a directory may not be a root; undefined if it may. `guarded` are files and directories of the agent. */
export function reasonAgainstRoot(root: string, guarded: readonly string[]): string | undefined {
  if (root === '/') return 'it is all of this machine';
  const around = [...OF_THE_MACHINE, ...guarded].find((directory) => isWithin(directory, root));
  if (around !== undefined) return `it is${around === root ? '' : ' within'} ${around}, which no service may read`;
  const inside = guarded.find((file) => isWithin(root, file));
  return inside === undefined ? undefined : `it contains ${inside}, which no service may read`;
}
