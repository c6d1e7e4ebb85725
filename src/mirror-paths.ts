/** Where mirrors and results are below the mirror directory, as the parts of a path; a contract with those who read them. */
import type { JobId, LiveFileKey } from './job.ts';

export const liveParts = (jobId: JobId, { taskId, file }: LiveFileKey): string[] => [
  jobId,
  'live',
  taskId,
  `${file}.log`,
];

export const resultsParts = (jobId: JobId): string[] => [jobId, 'results'];
