/** Whether two reports of one thing agree, in each key that both have. */

/** Where they differ, as `.tasks.found: 1, 2`; undefined if they do not. */
export function differenceOf(one: unknown, other: unknown): string | undefined {
  if (!isObject(one) || !isObject(other)) return Object.is(one, other) ? undefined : `: ${one}, ${other}`;
  if (Array.isArray(one) && Array.isArray(other) && one.length !== other.length)
    return `.length: ${one.length}, ${other.length}`;
  for (const key of Object.keys(one)) {
    const difference = key in other ? differenceOf(one[key], other[key]) : undefined;
    if (difference !== undefined) return `.${key}${difference}`;
  }
  return undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
