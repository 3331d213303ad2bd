-- Four trials that an H200 played as A100-80G, in the first version of the store's schema.
PRAGMA journal_mode = WAL;
CREATE TABLE attempt (  id INTEGER PRIMARY KEY,  cell INTEGER NOT NULL REFERENCES cell (id),  context INTEGER NOT NULL,  try INTEGER NOT NULL,  state TEXT NOT NULL CHECK (state IN ('running', 'finished')),  outcome TEXT,  status INTEGER,  detail TEXT,  log TEXT NOT NULL,  command TEXT NOT NULL,  versions TEXT,  gpu TEXT,  timeout_ms INTEGER NOT NULL,  started_ms INTEGER NOT NULL,  ended_ms INTEGER,  keeper_pid INTEGER,  keeper_started INTEGER,  predicted_bytes INTEGER NOT NULL,  predicted_fits INTEGER NOT NULL,  steps INTEGER,  allocated_bytes INTEGER,  requested_bytes INTEGER,  reserved_bytes INTEGER,  retries INTEGER,  CHECK ((state = 'finished') = (outcome IS NOT NULL))) STRICT;
INSERT INTO "attempt" VALUES(1,1,24576,1,'finished','fits',0,'','logs/Qwen3-0.6B/gpu-1/sp-1/model_len-24576.log','python3 -u logs/share/torch_worker.py --ask SOCKET logs/Qwen3-0.6B/gpu-1/sp-1/model_len-24576.json','torch 2.11.0+cu130, transformers 5.17.0','NVIDIA H200',120000,1794734039107,1794734063532,474,4002,83317751808,1,2,73789271552,73788228620,83338723328,6);
INSERT INTO "attempt" VALUES(2,1,28672,1,'finished','gpu_memory',1,'reached the limit set for this process: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.23 GiB. GPU 0 has a total capacity of 139.80 GiB of which 67.53 GiB is free. Including non-PyTorch memory, this process has 72.25 GiB memory in use. 77.64 GiB allowed; Of the allocated memory 55.58 GiB is allocated by PyTorch, and 15.9','logs/Qwen3-0.6B/gpu-1/sp-1/model_len-28672.log','python3 -u logs/share/torch_worker.py --ask SOCKET logs/Qwen3-0.6B/gpu-1/sp-1/model_len-28672.json','torch 2.11.0+cu130, transformers 5.17.0','NVIDIA H200',120000,1794734063536,1794734072144,522,6444,77158416384,0,0,0,0,0,0);
INSERT INTO "attempt" VALUES(18,10,36864,1,'finished','gpu_memory',1,'reached the limit set for this process: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 10.43 GiB. GPU 0 has a total capacity of 139.80 GiB of which 73.52 GiB is free. Including non-PyTorch memory, this process has 66.26 GiB memory in use. 75.73 GiB allowed; Of the allocated memory 54.85 GiB is allocated by PyTorch, and 10.6','logs/Qwen3-4B/gpu-4/sp-2/model_len-36864.log','python3 -u logs/share/torch_worker.py --ask SOCKET logs/Qwen3-4B/gpu-4/sp-2/model_len-36864.json','torch 2.11.0+cu130, transformers 5.17.0','NVIDIA H200',120000,1794734456201,1794734506627,1131,45711,81308680192,1,1,62050340864,62045874184,75568775168,0);
INSERT INTO "attempt" VALUES(19,10,32768,1,'finished','fits',0,'','logs/Qwen3-4B/gpu-4/sp-2/model_len-32768.log','python3 -u logs/share/torch_worker.py --ask SOCKET logs/Qwen3-4B/gpu-4/sp-2/model_len-32768.json','torch 2.11.0+cu130, transformers 5.17.0','NVIDIA H200',120000,1794734506647,1794734556174,1179,50755,78085357568,1,2,64271324672,64271033356,79205236736,0);
CREATE TABLE cell (  id INTEGER PRIMARY KEY,  key TEXT NOT NULL UNIQUE,  model TEXT NOT NULL,  engine TEXT NOT NULL,  card TEXT NOT NULL,  gpus INTEGER NOT NULL,  sp INTEGER NOT NULL,  max_position INTEGER NOT NULL) STRICT;
INSERT INTO "cell" VALUES(1,'model=Qwen3-0.6B
recipe=trinity
accum=2
sp=1
save-hf=never
torch=2.11
gpus=1
engine=torch
as=A100-80G
one-gpu=on
','Qwen3-0.6B','torch','A100-80G',1,1,40960);
INSERT INTO "cell" VALUES(10,'model=Qwen3-4B
recipe=trinity
accum=2
sp=2
save-hf=never
torch=2.11
gpus=4
engine=torch
as=A100-80G
one-gpu=on
','Qwen3-4B','torch','A100-80G',4,2,40960);
CREATE INDEX attempt_of_cell ON attempt (cell, id);
PRAGMA user_version = 1;
