/** The one job of the service. */

export const NAMESPACE = 'http://bench.example.org/';
export const JOB_ID = '501';
export const TASK_ID = '9001';
