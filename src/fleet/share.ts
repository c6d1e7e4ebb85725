/** How many jobs each agent is to own, so that none has more than another without need. */

export interface Capacity {
  readonly name: string;
  readonly mostJobs: number;
}

/**
 * The share of each agent by its name: all have the same, but for those that may not own as many, whose rest the others
 * share. Together they are at least as many as there are jobs, if there is room.
 */
export function sharesOf(jobs: number, agents: readonly Capacity[]): Map<string, number> {
  const shares = new Map<string, number>();
  let left = jobs;
  const bySize = [...agents].sort((a, b) => a.mostJobs - b.mostJobs || (a.name < b.name ? -1 : 1));
  for (const [index, { name, mostJobs }] of bySize.entries()) {
    const share = Math.min(mostJobs, Math.ceil(left / (bySize.length - index)));
    shares.set(name, share);
    left -= share;
  }
  return shares;
}

/**
 * How many of its jobs an agent gives back now, so that others that have fewer than their share may take them: a part of
 * what is above its own share, so that it takes half a minute and nobody is flooded.
 */
export function excessOf(own: number, share: number, room: number): number {
  const excess = Math.min(own - share, room);
  return excess <= 0 ? 0 : Math.max(1, Math.ceil(excess / 10));
}
