/** One result: what is known of it, what is in it, and the sync that brings it. */
import { useSignal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { ResultFile } from '../../contract/addresses.ts';
import type { JobDetail } from '../../contract/events.ts';
import { address, askBytes } from '../api.ts';
import { live } from '../live.ts';
import { Pane } from '../pane/pane.tsx';
import { Icon, Passed } from '../parts/button.tsx';
import { useAnswer, usePassed } from '../parts/hooks.ts';
import { Fact, Failure, Outside } from '../parts/words.tsx';
import { hashOf, openedFile } from '../route.ts';
import { isBinary } from '../text/terminal.ts';
import { bytes, clock, counted, grouped } from '../text/units.ts';
import { Csv } from './csv.tsx';
import { STATES } from './entry.tsx';

/** So many bytes show whether a file is text. */
const BEGINNING_BYTES = 4 * 1024;

interface ResultViewProps {
  readonly jobId: string;
  readonly file: ResultFile;
}

export function ResultView({ jobId, file }: ResultViewProps) {
  const job = live.details.value.get(jobId);
  const isHere = file.fetchedAt !== null || file.state === 'linked';
  return (
    <section class="result" aria-label="Result">
      <header class="pane-head">
        <h2>
          <Outside text={file.name} />
        </h2>
        {isHere && file.live === null && (
          <Passed class="button" to={address('raw', { job: jobId, result: file.name })}>
            <Icon name="download" /> Download
          </Passed>
        )}
        <a class="icon-button" href={hashOf({ page: 'results', jobId })} aria-label="Close" title="Close">
          <Icon name="close" />
        </a>
      </header>
      <dl class="facts">
        <Fact word="state">{STATES[file.state][0]}</Fact>
        {file.bytes !== null && (
          <Fact word="size">
            {bytes(file.bytes)} ({grouped(file.bytes)} bytes)
          </Fact>
        )}
        {file.fetchedAt !== null && <Fact word="fetched">{clock(file.fetchedAt)}</Fact>}
        {file.live !== null && (
          <Fact word="is the live file">
            <a href={hashOf({ page: 'live', jobId, files: openedFile(file.live) })}>{file.live}</a>
          </Fact>
        )}
      </dl>
      {file.reason !== null && <Failure error={{ message: file.reason }} />}
      {isHere &&
        file.live === null &&
        (file.preview === 'text' ? <Text jobId={jobId} file={file} /> : <Frame jobId={jobId} file={file} />)}
      {!isHere && (
        <div class="empty">
          <p>The agent has not fetched it yet.</p>
          {job !== undefined && <LastSync job={job} />}
        </div>
      )}
    </section>
  );
}

/** As lines, unless its first bytes are none of a text; CSV as a table, too. */
function Text({ jobId, file: { name, bytes: length } }: ResultViewProps) {
  const asText = useSignal(false);
  const asTable = useSignal(false);
  const content = useMemo(() => ({ job: jobId, result: name }), [jobId, name]);
  const { answer: beginning, problem } = useAnswer(() => askBytes(content, 0, BEGINNING_BYTES), [content]);
  if (problem !== undefined) return <Failure error={problem} />;
  if (beginning === undefined) return null;
  if (isBinary(beginning) && !asText.value)
    return (
      <p class="notice plain">
        Binary: download it, or
        <button type="button" class="button" onClick={() => (asText.value = true)}>
          Show as text
        </button>
      </p>
    );
  if (asTable.value) return <Csv content={content} bytes={length ?? 0} onText={() => (asTable.value = false)} />;
  return (
    <>
      {/\.[ct]sv$/i.test(name) && (
        <p class="notice plain">
          <button type="button" class="button" onClick={() => (asTable.value = true)}>
            Show as a table
          </button>
        </p>
      )}
      <Pane content={content} opening={{ follows: false }} label={name} />
    </>
  );
}

/** What the browser draws by itself, where nothing of it runs: the answer is in a sandbox, too. */
function Frame({ jobId, file: { name, preview } }: ResultViewProps) {
  const to = usePassed(address('preview', { job: jobId, result: name }));
  if (to === undefined) return null;
  // Chromium shows no PDF in a frame with this attribute; the sandbox of its answer it takes.
  return <iframe class="preview" title={name} src={to} {...(preview === 'pdf' ? {} : { sandbox: '' })} />;
}

/** What comes right now and how fast, or what the last sync brought. */
export function LastSync({ job }: { job: JobDetail }) {
  const { lastSync } = job.results;
  if (lastSync === null) return <p class="fine">The results are not listed yet.</p>;
  const { done, wanted, wantedBytes, way, bytesPerSecond, endedAt, fallback } = lastSync;
  const by = way === null ? '' : ` by ${/^(?:service|soap)$/.test(way) ? 'the service' : way}`;
  const rate = bytesPerSecond > 0 ? `, ${bytes(bytesPerSecond)}/s` : '';
  return (
    <>
      {endedAt === null && wanted > 0 && (
        <progress
          aria-label="Results on the way"
          max={wantedBytes === null ? wanted : Math.max(1, wantedBytes)}
          value={wantedBytes === null ? done : lastSync.bytes}
        />
      )}
      <p class="fine">
        {endedAt === null
          ? `on the way: ${grouped(done)} of ${counted(wanted, 'file')}, ${bytes(lastSync.bytes)}${
              wantedBytes === null ? '' : ` of ${bytes(wantedBytes)}`
            }`
          : `The last sync checked ${counted(wanted, 'file')} and transferred ${bytes(lastSync.bytes)}`}
        {by}
        {rate}
      </p>
      {fallback !== null && (
        <p class="fine" title={fallback}>
          Files come by the service, not directly: <Outside text={fallback} />
        </p>
      )}
    </>
  );
}
