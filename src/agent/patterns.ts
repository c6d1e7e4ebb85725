/** Patterns as in .gitignore. */
import ignore, { type Ignore } from 'ignore';

export interface Patterns {
  readonly include: readonly string[];
  readonly exclude: readonly string[];
}

type Patterned = (relative: string) => boolean;

/** The library keeps what it found of each path, and of each directory above it: so many characters of them, at most. */
const MAX_REMEMBERED = 4 * 1024 * 1024;

export function patterned(patterns: readonly string[]): Patterned {
  if (patterns.length === 0) return () => false;
  if (patterns.includes('**') && patterns.every((pattern) => !pattern.startsWith('!'))) return () => true;
  const fresh = () => ignore({ allowRelativePaths: true, ignorecase: false }).add([...patterns]);
  let rules: Ignore = fresh();
  let remembered = 0;
  return (relative) => {
    remembered += relative.length * relative.split('/').length;
    if (remembered > MAX_REMEMBERED) {
      rules = fresh();
      remembered = 0;
    }
    return rules.ignores(relative);
  };
}
