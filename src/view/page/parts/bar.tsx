/** Shares of a whole, as a bar. */

/** How far something is, from 0 to 1. */
export function ProgressBar({ done, label }: { done: number; label: string }) {
  return (
    <div
      class="bar"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(done * 100)}
    >
      <span class="part done" style={{ width: `${done * 100}%` }} />
    </div>
  );
}

export interface Share {
  readonly kind: string;
  readonly count: number;
}

/** Several kinds side by side; the text has the same values. */
export function Shares({ shares, words }: { shares: readonly Share[]; words: string }) {
  const all = shares.reduce((sum, { count }) => sum + count, 0);
  return (
    <div class="bar" role="img" aria-label={words}>
      {shares
        .filter(({ count }) => count > 0)
        .map(({ kind, count }) => (
          <span key={kind} class={`part ${kind}`} style={{ width: `${(count / all) * 100}%` }} />
        ))}
    </div>
  );
}
