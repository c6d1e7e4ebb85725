/** Where mirrors and results are below the mirror directory, as the parts of a path; a contract with those who read them. */
import { isLiveFileName, type JobId, type LiveFileKey, parseLong } from './job.ts';

export const liveParts = (jobId: JobId, { taskId, file }: LiveFileKey): string[] => {
  if (!isLiveFileName(file)) throw new Error(`no live file: ${file}`);
  return [whole(jobId), 'live', whole(taskId), `${file}.log`];
};

export const resultsParts = (jobId: JobId): string[] => [whole(jobId), 'results'];

/** The last line of defence: an id from outside that was not parsed never leads out of the mirror directory. */
function whole(id: string): string {
  if (parseLong(id) !== id) throw new Error(`not an id: ${JSON.stringify(id)}`);
  return id;
}
