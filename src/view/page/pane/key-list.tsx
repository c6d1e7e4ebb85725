/** The list of all keys, which `?` opens. */
import { useRef } from 'preact/hooks';
import { IconButton } from '../parts/button.tsx';
import { Fact } from '../parts/words.tsx';
import { KEYS } from './keys.ts';

const named = (key: string) => key.replace(/^[A-Z]$/, 'Shift+$&').replace('Arrow', '');

export function KeyList() {
  const dialog = useRef<HTMLDialogElement>(null);
  return (
    <>
      <IconButton icon="keys" label="Keys" keyName="?" kind="keys" onClick={() => dialog.current?.showModal()} />
      <dialog class="key-list" ref={dialog} aria-label="Keys">
        <div class="key-head">
          <h2>Keys</h2>
          <IconButton
            icon="close"
            label="Close the list of keys"
            keyName="Esc"
            onClick={() => dialog.current?.close()}
          />
        </div>
        <dl class="facts">
          {KEYS.map(({ keys, words }) => (
            <Fact key={words} word={keys.map((key) => <kbd key={key}>{named(key)}</kbd>)}>
              {words}
            </Fact>
          ))}
        </dl>
        <p class="fine">
          Keys of a file act on the one that was used last. A click on a line number selects it; Shift+click extends.
        </p>
      </dialog>
    </>
  );
}
