/** What somebody has to know of the rows below: that they are old, that more came, that something failed. */

import type { Refused } from '../api.ts';
import type { OpenFile } from '../file/open-file.ts';
import { Icon } from '../parts/icon.tsx';
import { Failure } from '../parts/words.tsx';
import { bytes } from '../text/units.ts';

export function Notices({ file }: { file: OpenFile }) {
  void file.changes.value;
  const { isFormer, isLoaded, isPastEnd, problem, bytes: total } = file.standing.value;
  const followedTo = file.followedTo.value;
  const came = total - followedTo;
  return (
    <>
      {problem !== undefined && (
        <Failure trouble={{ message: problem.message, hint: (problem as Refused).hint ?? null }} />
      )}
      {isFormer && (
        <p class="notice">
          The file was rewritten; this is what it was before.
          <button type="button" onClick={() => file.follow()}>
            Show what it is now
          </button>
        </p>
      )}
      {isPastEnd && !file.following.value && (
        <p class="notice plain">
          The place that was asked for is past the end of this file; it may have been rewritten.
        </p>
      )}
      {isLoaded && total === 0 && !isFormer && <p class="notice plain">Empty so far.</p>}
      {!file.following.value && !isFormer && followedTo > 0 && came > 0 && (
        <button type="button" class="more" onClick={() => file.follow()}>
          <Icon name="end" /> {bytes(came)} new
        </button>
      )}
    </>
  );
}
