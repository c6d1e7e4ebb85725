/** Where one types what to look for, and reads how often it is there. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Search, TextQuery } from '../file/search.ts';
import { IconButton } from '../parts/button.tsx';
import { grouped } from '../text/units.ts';
import type { Opened } from './opened.ts';

interface SearchBarProps {
  readonly opened: Opened;
  readonly onClose: () => void;
}

export function SearchBar({ opened, onClose }: SearchBarProps) {
  const { search } = opened;
  const field = useRef<HTMLInputElement>(null);
  const query = search.query.value;
  const isForErrors = query.errors === true;
  // At once, not after the next frame: until then, what is typed would be taken for keys of the pane.
  useLayoutEffect(() => {
    if (!isForErrors) field.current?.focus();
  }, []);
  const start = (part: Partial<TextQuery>) => search.start({ ...query, ...part }, opened.seen.value.from);
  const flags = [
    ['Match case', 'Aa', query.matchesCase, { matchesCase: !query.matchesCase }],
    ['Regular expression', '.*', query.regex, { regex: !query.regex }],
    ['Lines that look like errors', '!', isForErrors, { text: '', errors: !isForErrors }],
  ] as const;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter') void opened.step(event.shiftKey);
    if (event.key === 'Escape') onClose();
    if (event.key === 'Enter' || event.key === 'Escape') event.preventDefault();
  };
  return (
    <search class="search-bar">
      <input
        ref={field}
        type="search"
        aria-label="Search in the whole file"
        placeholder={isForErrors ? 'Lines that look like errors' : 'Search in the whole file'}
        maxLength={256}
        spellcheck={false}
        value={query.text}
        onInput={(event) => start({ text: event.currentTarget.value, errors: false })}
        onKeyDown={onKeyDown}
      />
      {flags.map(([label, sign, isOn, change]) => (
        <IconButton
          key={sign}
          kind="flag"
          label={`${label}: ${sign}`}
          title={label}
          isPressed={isOn}
          onClick={() => start(change)}
        >
          {sign}
        </IconButton>
      ))}
      <Count search={search} />
      <IconButton icon="previous" label="Previous match" keyName="Shift+Enter" onClick={() => void opened.step(true)} />
      <IconButton icon="next" label="Next match" keyName="Enter" onClick={() => void opened.step(false)} />
      <IconButton icon="close" label="Close the search" keyName="Esc" onClick={onClose} />
    </search>
  );
}

function Count({ search }: { search: Search }) {
  const found = search.found.value;
  if (found === undefined) return <span class="fine count" role="status" />;
  const { count, isDone, searched, of, problem } = found;
  const { place } = search;
  const so = place === undefined ? grouped(count) : `${grouped(place + 1)} of ${grouped(count)}`;
  const words = isDone && count === 0 && problem === undefined ? 'nothing found' : so;
  const percent = of === 0 ? 0 : Math.floor((searched / of) * 100);
  return (
    <span class="fine count" role="status" title={problem}>
      {problem !== undefined && count === 0 ? problem : words}
      {!isDone && ` · ${percent} %`}
      {problem !== undefined && count > 0 && ' · not all was searched'}
    </span>
  );
}
