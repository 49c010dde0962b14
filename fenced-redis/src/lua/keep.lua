redis.call('SET', KEYS[2], ARGV[7] .. answer, 'PX', ARGV[6])
