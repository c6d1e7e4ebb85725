/**
 * Paths as the service writes them: with slashes, however many, at the beginning or between the parts
 * (docs/servers.md 4.2).
 */

export function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '');
}

/** Whether a path ends in another one, which is not empty. */
export function endsWith(parts: readonly string[], end: readonly string[]): boolean {
  return end.length > 0 && end.every((part, index) => parts[parts.length - end.length + index] === part);
}
